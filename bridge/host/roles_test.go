package host_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	goplugin "github.com/hashicorp/go-plugin"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"

	"samebits/bridge/diag"
	"samebits/bridge/host"
	pb "samebits/bridge/proto/samebitsv1"
	"samebits/bridge/recording"
	"samebits/bridge/serve"
	"samebits/bridge/tensor"
)

// act plays a role until the process ends.
func act(role string) {
	switch role {
	case "good":
		serve.Serve(&testArm{})
	case "closer":
		serve.Serve(&closer{})
	case "builder":
		serve.Serve(&builder{})
	case "garbage":
		fmt.Println("Hello, I am \x1b[31mnot\x1b[0m a plugin")
		time.Sleep(time.Hour)
	case "garbage-and-exit":
		fmt.Println("usage: thing [flags]")
		os.Exit(64)
	case "endless-line":
		for {
			fmt.Print(strings.Repeat("x", 1<<16))
		}
	case "exits":
		fmt.Fprintln(os.Stderr, "ImportError: libgone.so: cannot open shared object file")
		os.Exit(3)
	case "exits-well":
	case "silent":
		fmt.Fprintln(os.Stderr, "thinking")
		time.Sleep(time.Hour)
	case "other-handshake":
		serveOther(2, 1)
	case "other-wire":
		serveOther(1, 7)
	case "bare":
		serveOther(1, 1)
	case "liar":
		serveLiar()
	case "not-listening":
		fmt.Printf("1|1|unix|%s/nobody|grpc|\n", os.Getenv("PLUGIN_UNIX_SOCKET_DIR"))
		time.Sleep(time.Hour)
	case "foreign-certificate":
		serveWith(1, 1, func() (*tls.Config, error) { return foreignTLS() })
	case "forking-host":
		forkingHost()
	case "host":
		actAsHost()
	case "sleeper":
		time.Sleep(time.Hour)
	default:
		panic("no role " + role)
	}
}

// testArm adds one to every byte, and misbehaves as the options of Load say: KEY=VALUE is call=deed.
type testArm struct {
	serve.Unimplemented
	deeds   map[string]string
	inputs  [][]byte
	outputs [][]byte
	steps   int64
}

var spec = tensor.Spec{Name: "images", DType: tensor.Uint8, Sizes: []int64{2, 50}}

func (a *testArm) Describe(context.Context) (serve.Description, error) {
	var environment []string
	for _, pair := range os.Environ() {
		key, _, _ := strings.Cut(pair, "=")
		environment = append(environment, key)
	}
	d := serve.Description{Plugin: "test", Version: "1.2", Arms: []string{"native-eager"}, Devices: []string{"host"}}
	d.Environment = append(d.Environment, setting("variables", strings.Join(environment, " ")))
	return d, nil
}

func (a *testArm) Load(_ context.Context, memory *serve.Memory, request serve.LoadRequest) (serve.LoadReply, error) {
	a.deeds = map[string]string{}
	for _, o := range request.Options {
		a.deeds[o.Key] = o.Value
	}
	if err := a.do("load"); err != nil {
		return serve.LoadReply{}, err
	}
	weights, err := memory.Bytes(request.Weights)
	if err != nil {
		return serve.LoadReply{}, err
	}
	return serve.LoadReply{Inputs: []tensor.Spec{spec}, Outputs: []tensor.Spec{spec}, RecordingDigest: string(weights)}, nil
}

func (a *testArm) Prepare(_ context.Context, memory *serve.Memory, request serve.PrepareRequest) (serve.PrepareReply, error) {
	if err := a.do("prepare"); err != nil {
		return serve.PrepareReply{}, err
	}
	a.inputs, a.outputs = nil, nil
	for _, list := range []struct {
		banks []serve.Bank
		to    *[][]byte
	}{{request.Inputs, &a.inputs}, {request.Outputs, &a.outputs}} {
		for _, bank := range list.banks {
			b, err := memory.Tensor(bank[0])
			if err != nil {
				return serve.PrepareReply{}, err
			}
			*list.to = append(*list.to, b)
		}
	}
	return serve.PrepareReply{Captured: request.CUDAGraph, Nodes: 7, PeakBytes: 1 << 40}, nil
}

func (a *testArm) Step(input, output int) error {
	if err := a.do("step"); err != nil {
		return err
	}
	for i, b := range a.inputs[input] {
		a.outputs[output][i] = b + 1
	}
	a.steps++
	return nil
}

func (a *testArm) Disturb(context.Context, serve.DisturbRequest) error { return a.do("disturb") }

func (a *testArm) Situate(ctx context.Context, r serve.SituateRequest) (serve.SituateReply, error) {
	if r.Situation != "seed" {
		return a.Unimplemented.Situate(ctx, r)
	}
	return serve.SituateReply{Facts: []recording.Setting{setting("seed", strconv.FormatUint(r.Seed, 10))}}, nil
}

// Process gives back what it was asked, in a text that is longer than gRPC takes by default.
func (a *testArm) Process(_ context.Context, memory *serve.Memory, r serve.ProcessRequest) (serve.ProcessReply, error) {
	data, err := memory.Tensor(r.Bank[0])
	return serve.ProcessReply{Tensors: []tensor.Spec{r.Bank[0].Spec},
		Text: fmt.Sprintf("%s %v %d %s", r.Stage, r.Settings, data[0], strings.Repeat("x", 8<<20))}, err
}

func (a *testArm) Trace(_ context.Context, _ *serve.Memory, request serve.TraceRequest) (serve.TraceReply, error) {
	operations := []serve.OperationTrace{{Operation: 3, Digests: []string{"aa", ""}}}
	if request.Want == nil {
		return serve.TraceReply{Operations: operations}, nil
	}
	return serve.TraceReply{Operations: operations,
		Wanted: tensor.Spec{Name: strconv.Itoa(request.Want.Result), DType: tensor.Float32, Sizes: []int64{1 << 40, 1 << 40}}}, nil
}

func (a *testArm) Measure(_ context.Context, request serve.MeasureRequest) (serve.MeasureReply, error) {
	return serve.MeasureReply{Milliseconds: make([]float64, request.Iterations)}, nil
}

func (a *testArm) Stats(context.Context) (serve.Stats, error) {
	return serve.Stats{EagerSteps: a.steps, FallbackReason: "none"}, nil
}

// closer is an arm that cannot free what it holds.
type closer struct{ testArm }

func (*closer) Close() error { return errors.New("it is lost") }

// builder is an arm that makes and records families, as a reference does.
type builder struct {
	testArm
	made []byte
}

func (b *builder) Build(_ context.Context, _ *serve.Memory, r serve.BuildRequest) (serve.BuildReply, error) {
	b.made = []byte(r.Family + r.Size + r.Precision)
	return serve.BuildReply{Inputs: []tensor.Spec{spec}, WeightsLength: int64(len(b.made)), ImgSize: r.ImgSize}, nil
}

func (b *builder) Record(_ context.Context, memory *serve.Memory, inputs serve.Bank) (serve.RecordReply, error) {
	data, err := memory.Tensor(inputs[0])
	if err != nil {
		return serve.RecordReply{}, err
	}
	b.made = append(b.made, data[0])
	return serve.RecordReply{RecordingLength: int64(len(b.made)), Outputs: []tensor.Spec{spec}}, nil
}

func (b *builder) Export(_ context.Context, memory *serve.Memory, r serve.ExportRequest) error {
	place, err := memory.Bytes(r.Region)
	if err == nil {
		copy(place, r.What.String()+" "+string(b.made))
	}
	return err
}

// liar is an arm that answers steps itself, against the rules of the wire.
type liar struct {
	testArm
	block  []byte
	socket int
}

// serveLiar keeps a hold of what serve takes for its own.
func serveLiar() {
	keep := func(variable string) int {
		fd, err := strconv.Atoi(os.Getenv(variable))
		if err == nil {
			fd, err = unix.Dup(fd)
		}
		if err != nil {
			panic(err)
		}
		return fd
	}
	block, err := unix.Mmap(keep("SAMEBITS_FD_MEMORY"), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	serve.Serve(&liar{block: block, socket: keep("SAMEBITS_FD_STEP")})
}

func (l *liar) Step(int, int) error {
	put := func(at int, n uint32) { binary.LittleEndian.PutUint32(l.block[at:], n) }
	const sequence, status, problems, text = 8, 32, 36, 64
	answer := []byte{'D'}
	put(status, 0)
	switch l.deeds["step"] {
	case "no status":
		put(status, 0xffffffff)
	case "unknown status":
		put(status, 2)
	case "other byte":
		answer[0] = 'X'
	case "other step":
		put(sequence, 99)
	case "long text":
		put(status, 1)
		put(problems, 4096-text+1)
	case "torn text":
		put(status, 1)
		put(problems, 2)
		copy(l.block[text:], "\xff\xff")
	case "no problem":
		put(status, 1)
		put(problems, 0)
	}
	if _, err := unix.Write(l.socket, answer); err != nil {
		return err
	}
	select {} // lest serve answers, too
}

// do is one misdeed.
func (a *testArm) do(call string) error {
	switch deed := a.deeds[call]; deed {
	case "":
		return nil
	case "panic":
		a.outputs[1<<20][0]++ // as a bug does it
	case "problems":
		var ps diag.Problems
		ps.Add("UNKNOWN_OPERATION", "operations[3]", "no aten::frobnicate")
		ps.Add("UNKNOWN_OPERATION", "operations[9]", "no aten::unfrobnicate")
		return ps
	case "many-problems":
		var ps diag.Problems
		for i := range 5000 {
			ps.Add("UNKNOWN_OPERATION", fmt.Sprintf("operations[%d]", i), "no aten::frobnicate")
		}
		return ps
	case "long-problem":
		return diag.New("LONG", "x", "%s", bytes.Repeat([]byte("é"), 100_000))
	case "error":
		return errors.New("something broke")
	case "out-of-memory":
		return fmt.Errorf("%w: 3 bytes were wanted", serve.ErrOutOfMemory)
	case "exit":
		fmt.Println("words on standard output")
		fmt.Fprintln(os.Stderr, "last words")
		os.Exit(5)
	case "segfault":
		die("SEGV")
	case "hang":
		time.Sleep(time.Hour)
	case "stop-the-world":
		die("STOP")
	case "slow":
		time.Sleep(600 * time.Millisecond)
	case "child":
		child := exec.Command(os.Args[0])
		child.Env = []string{actAs + "=sleeper"}
		child.Stderr = os.Stderr // it holds the pipe
		if err := child.Start(); err != nil {
			return err
		}
		serve.Logger().Warn("made a child", "pid", child.Process.Pid)
	case "talk":
		fmt.Println(strings.Repeat("z", 200_000)) // longer than any line reader likes
		fmt.Fprintln(os.Stderr, "a plain line")
		fmt.Fprintln(os.Stderr, `{"@message": 1, "@level": {}}`)
		serve.Logger().Warn("a structured line", "answer", 42)
	default:
		return fmt.Errorf("no deed %q", deed)
	}
	return nil
}

// die sends a signal to the process itself, as its own bugs or a user might.
func die(signal string) {
	_ = exec.Command("kill", "-"+signal, strconv.Itoa(os.Getpid())).Run()
	time.Sleep(time.Second)
}

// otherPlugin speaks other versions.
type otherPlugin struct {
	goplugin.NetRPCUnsupportedPlugin
	pb.UnimplementedArmServer
	protocol uint32
}

func (o *otherPlugin) GRPCServer(_ *goplugin.GRPCBroker, s *grpc.Server) error {
	pb.RegisterArmServer(s, o)
	return nil
}

func (o *otherPlugin) GRPCClient(context.Context, *goplugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("no client")
}

func (o *otherPlugin) Describe(context.Context, *pb.DescribeRequest) (*pb.DescribeReply, error) {
	return &pb.DescribeReply{Protocol: o.protocol, Plugin: "futuristic", Version: "9.9"}, nil
}

func serveOther(handshake uint, protocol uint32) {
	serveWith(handshake, protocol, func() (*tls.Config, error) {
		fd, err := strconv.Atoi(os.Getenv("SAMEBITS_FD_TLS"))
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(os.NewFile(uintptr(fd), "tls"))
		if err != nil {
			return nil, err
		}
		var keys struct{ Certificate, Key, CA string }
		if err := json.Unmarshal(data, &keys); err != nil {
			return nil, err
		}
		pair, err := tls.X509KeyPair([]byte(keys.Certificate), []byte(keys.Key))
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM([]byte(keys.CA))
		return &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}, err
	})
}

func serveWith(handshake uint, protocol uint32, provider func() (*tls.Config, error)) {
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig: goplugin.HandshakeConfig{ProtocolVersion: handshake, MagicCookieKey: "SAMEBITS_PLUGIN", MagicCookieValue: "arm"},
		Plugins:         goplugin.PluginSet{"arm": &otherPlugin{protocol: protocol}},
		GRPCServer:      goplugin.DefaultGRPCServer,
		TLSProvider:     provider,
	})
}

// actAsHost starts a plugin, has it step for ever, and tells its number: for one who kills this host.
func actAsHost() {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	p, err := host.Start(context.Background(), host.Config{Command: self, Env: []string{actAs + "=good"}})
	if err != nil {
		panic(err)
	}
	fmt.Println(p.PID())
	time.Sleep(time.Hour)
}
