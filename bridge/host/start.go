package host

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"

	"samebits/bridge/arm"
	pb "samebits/bridge/proto/samebitsv1"
)

// maxReply bounds what a plugin may answer: the trace of a large family has some hundred kilobytes.
const maxReply = 64 << 20

// Start starts a plugin and asks it to describe itself. ctx counts for the start alone.
//
// An *Error says why it did not start. Nothing is left of it then.
func Start(ctx context.Context, config Config) (*Plugin, error) {
	config = config.withDefaults()
	path, refused := inspect(config.Command)
	if refused != nil {
		refused.Plugin, refused.During = config.Name, "start"
		return nil, refused
	}
	within, cancel := context.WithTimeout(ctx, config.StartDeadline)
	defer cancel()
	p, err := prepare(config, path)
	if err != nil {
		return nil, fmt.Errorf("plugin %s: %w", config.Name, err)
	}
	if err := p.start(within); err != nil {
		failure := p.explainStart(ctx, within, err)
		if err := p.Stop(); err != nil {
			return nil, errors.Join(failure, err)
		}
		return nil, failure
	}
	return p, nil
}

// prepare makes what host and plugin will share.
func prepare(config Config, path string) (_ *Plugin, err error) {
	p := &Plugin{config: config, journal: &journal{plugin: config.Name, keep: config.KeepLines, sink: config.Log}}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.release())
		}
	}()
	keys, err := newCredentials()
	if err != nil {
		return nil, err
	}
	if p.memory, err = newMemory(); err != nil {
		return nil, err
	}
	p.memory.attach = p.attach
	if p.ends, err = newDescriptors(p.memory.file, keys.plugin); err != nil {
		return nil, err
	}
	if p.sockets, err = newSocketDir(); err != nil {
		return nil, err
	}
	p.process = newProcess(p.program(path), p.journal)
	p.process.afterStart = p.ends.handedOver
	p.client = goplugin.NewClient(p.clientConfig(keys))
	return p, nil
}

// program says how the process shall come into being.
func (p *Plugin) program(path string) program {
	if z := p.config.Zygote; z != nil {
		return &forked{zygote: z, files: p.ends.theirs}
	}
	cmd := exec.Command(path, p.config.Args...) // its life is not that of a context: Stop ends it
	cmd.Dir = p.config.Dir
	for _, t := range p.ends.theirs {
		cmd.ExtraFiles = append(cmd.ExtraFiles, t.file)
	}
	return executed{cmd}
}

func (p *Plugin) clientConfig(keys *credentials) *goplugin.ClientConfig {
	return &goplugin.ClientConfig{
		HandshakeConfig: goplugin.HandshakeConfig{ProtocolVersion: handshakeVersion, MagicCookieKey: "SAMEBITS_PLUGIN", MagicCookieValue: "arm"},
		Plugins:         goplugin.PluginSet{}, // its connection is all that we take
		RunnerFunc: func(_ hclog.Logger, theirs *exec.Cmd, _ string) (runner.Runner, error) {
			p.process.program.environ(environment(p.config.Env, p.ends.theirs, theirs.Env))
			return p.process, nil
		},
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
		TLSConfig:        keys.host,
		SkipHostEnv:      true,
		StartTimeout:     p.config.StartDeadline + time.Minute, // ours comes first
		UnixSocketConfig: &goplugin.UnixSocketConfig{TempDir: p.sockets.Path},
		Logger:           hclog.NewNullLogger(), // the process's output has a journal of its own
		SyncStdout:       &lineWriter{take: p.journal.stdout},
		SyncStderr:       &lineWriter{take: p.journal.stderr},
		GRPCDialOptions: []grpc.DialOption{
			grpc.WithIdleTimeout(0), // the socket's folder is removed: there is no second connection
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxReply)),
		},
	}
}

// start starts the process and makes sure that somebody speaks there whom we understand.
func (p *Plugin) start(ctx context.Context) error {
	// go-plugin knows no context here.
	defer context.AfterFunc(ctx, func() { _ = p.process.Kill(context.Background()) })()
	client, err := p.client.Client()
	if err != nil {
		return err
	}
	connection, ok := client.(*goplugin.GRPCClient)
	if !ok {
		return fmt.Errorf("go-plugin gave a %T", client)
	}
	p.conn = connection.Conn
	p.arm = pb.NewArmClient(p.conn)
	if err := p.Ping(ctx); err != nil { // Client succeeds even if the TLS handshake failed
		return err
	}
	p.sockets.Remove() // the connection stays
	if p.description, err = p.Describe(ctx); err != nil {
		return err
	}
	if p.description.Protocol != arm.Protocol {
		return p.kill(&Error{Reason: ReasonProtocol, During: "start",
			Summary: fmt.Sprintf("%s %s speaks wire protocol %d, this host speaks %d", p.description.Plugin,
				p.description.Version, p.description.Protocol, arm.Protocol),
			Detail: "use a plugin and a host of the same release"})
	}
	return nil
}
