// Package serve is what the author of a plugin in Go imports: write an Arm and give it to Serve.
//
//	type arm struct{ serve.Unimplemented }
//
//	func main() { serve.Serve(&arm{}) }
//
// plugins/example is a whole plugin to copy, docs/wire.md what goes over the wire.
package serve

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	pb "samebits/bridge/proto/samebitsv1"
)

const (
	cookieKey   = "SAMEBITS_PLUGIN"
	cookieValue = "arm"
	// handshakeVersion is go-plugin's version of how a plugin is started; the wire has its own, arm.Protocol.
	handshakeVersion = 1
	// closeTime is how long a Closer may take.
	closeTime = time.Second
)

// Serve serves an arm to the host that started this process, until the host is done. It ends the process by itself if
// there is no host, or if the host dies.
func Serve(a Arm) {
	if os.Getenv(cookieKey) != cookieValue {
		fmt.Fprintf(os.Stderr, "%s is a plugin of Samebits: a host such as parity starts it, it does nothing by hand.\n"+
			"To see it work: parity verify FAMILY --help\n", filepath.Base(os.Args[0]))
		os.Exit(2)
	}
	ends, err := inherit()
	if err != nil {
		fmt.Fprintf(os.Stderr, "cannot serve: %v\n", err)
		os.Exit(1)
	}
	go ends.dieWithHost()
	memory := newMemory(ends.memory)
	l, err := newLoop(a, memory, ends)
	if err != nil {
		fmt.Fprintf(os.Stderr, "cannot serve: %v\n", err)
		os.Exit(1)
	}
	go l.run()
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig: goplugin.HandshakeConfig{ProtocolVersion: handshakeVersion, MagicCookieKey: cookieKey, MagicCookieValue: cookieValue},
		TLSProvider:     func() (*tls.Config, error) { return ends.tls, nil },
		Plugins:         goplugin.PluginSet{"arm": &armPlugin{server: &server{arm: a, memory: memory, loop: l}}},
		GRPCServer:      newServer(os.Stdout, os.Stderr),
		Logger:          hclog.New(&hclog.LoggerOptions{Name: "serve", Level: hclog.Warn, Output: os.Stderr, JSONFormat: true}),
	})
	if closer, ok := a.(Closer); ok {
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		if err := l.do(ctx, closer.Close); err != nil {
			Logger().Warn("close", "error", err)
		}
	}
}

// newServer gives go-plugin its gRPC server. go-plugin sends what is printed over the wire, where the last words of a
// dying process are lost, so the first call puts the files back.
func newServer(stdout, stderr *os.File) func([]grpc.ServerOption) *grpc.Server {
	var once sync.Once
	restore := func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		once.Do(func() { os.Stdout, os.Stderr = stdout, stderr })
		return handle(ctx, request)
	}
	return func(options []grpc.ServerOption) *grpc.Server {
		return grpc.NewServer(append(options, grpc.UnaryInterceptor(restore))...)
	}
}

// armPlugin registers the server with go-plugin.
type armPlugin struct {
	goplugin.NetRPCUnsupportedPlugin
	server *server
}

func (p *armPlugin) GRPCServer(_ *goplugin.GRPCBroker, s *grpc.Server) error {
	pb.RegisterArmServer(s, p.server)
	return nil
}

func (p *armPlugin) GRPCClient(context.Context, *goplugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, fmt.Errorf("a plugin is no client")
}
