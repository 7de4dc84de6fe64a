package serve

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"samebits/bridge/diag"
	"samebits/bridge/tensor"
)

const byHand = "SAMEBITS_TEST_BY_HAND"

func TestMain(m *testing.M) {
	if os.Getenv(byHand) != "" {
		Serve(&Unimplemented{})
		return
	}
	os.Exit(m.Run())
}

// A plugin that somebody starts in a shell says what it is.
func TestByHand(t *testing.T) {
	for _, c := range []struct {
		name string
		env  string
		code int
		says string
	}{
		{"without a host", "X=", 2, "is a plugin of Samebits"},
		{"with the cookie alone", cookieKey + "=" + cookieValue, 1, "SAMEBITS_FD_MEMORY is \"\""},
		{"with the number of no descriptor", cookieKey + "=" + cookieValue + " SAMEBITS_FD_STEP=999", 1, "SAMEBITS_FD_STEP: descriptor 999: bad file descriptor"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(strings.Fields(c.env), byHand+"=1")
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != c.code || !strings.Contains(string(out), c.says) {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// A plugin whose host is gone ends, though nobody asked it to.
func TestEndsWithTheHost(t *testing.T) {
	var ours, theirs []*os.File
	pipe := func() {
		t.Helper()
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = errors.Join(r.Close(), w.Close()) }) // closed already, as a rule
		ours, theirs = append(ours, w), append(theirs, r)
	}
	memory, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = memory.Close() }()
	if err := memory.Truncate(controlBytes); err != nil {
		t.Fatal(err)
	}
	for range 3 { // step, credentials, life
		pipe()
	}
	certificate, key := pairOf(t)
	keys, err := json.Marshal(map[string]string{"certificate": certificate, "key": key, "ca": certificate})
	if err == nil {
		_, err = ours[1].Write(keys)
	}
	if err = errors.Join(err, ours[1].Close()); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{byHand + "=1", cookieKey + "=" + cookieValue, "SAMEBITS_FD_MEMORY=3", "SAMEBITS_FD_STEP=4", "SAMEBITS_FD_TLS=5", "SAMEBITS_FD_LIFE=6"}
	cmd.ExtraFiles = append([]*os.File{memory}, theirs...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stuck := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
	defer stuck.Stop()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.HasPrefix(line, "1|1|unix|") {
		t.Errorf("it says %q, %v", line, err)
	}
	if err := ours[2].Close(); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(said.String(), "the host is gone") {
		t.Errorf("%v: %s", err, said.String())
	}
}

func TestUnimplemented(t *testing.T) {
	var a Arm = Unimplemented{}
	ctx := context.Background()
	_, describe := a.Describe(ctx)
	_, load := a.Load(ctx, nil, LoadRequest{})
	_, prepare := a.Prepare(ctx, nil, PrepareRequest{})
	_, trace := a.Trace(ctx, nil, TraceRequest{})
	_, measure := a.Measure(ctx, MeasureRequest{})
	_, stats := a.Stats(ctx)
	for call, err := range map[string]error{"Describe": describe, "Load": load, "Prepare": prepare, "Step": a.Step(0, 0),
		"Disturb": a.Disturb(ctx, DisturbRequest{}), "Trace": trace, "Measure": measure, "Stats": stats} {
		if !errors.Is(err, ErrUnimplemented) || !strings.Contains(err.Error(), call) {
			t.Errorf("%s: %v", call, err)
		}
	}
}

func TestExplain(t *testing.T) {
	problems := diag.Problems{{Reason: "X", Summary: "x"}, {Reason: "Y", Summary: "y"}}
	for _, c := range []struct {
		name    string
		err     error
		code    codes.Code
		reasons string
	}{
		{"problems", problems, codes.InvalidArgument, "X Y"},
		{"wrapped problems", fmt.Errorf("load: %w", problems), codes.InvalidArgument, "X Y"},
		{"no problems", diag.Problems{}, codes.Internal, "PLUGIN_ERROR"},
		{"order", ErrWrongOrder, codes.FailedPrecondition, "WRONG_ORDER"},
		{"order with problems", errors.Join(ErrWrongOrder, problems), codes.FailedPrecondition, "X Y"},
		{"memory", fmt.Errorf("%w: 3 GiB", ErrOutOfMemory), codes.ResourceExhausted, "OUT_OF_MEMORY"},
		{"missing", unimplemented("Build"), codes.Unimplemented, "UNIMPLEMENTED"},
		{"anything else", errors.New("broken"), codes.Internal, "PLUGIN_ERROR"},
		{"panic", guard(func() error { panic(problems) }), codes.Internal, "PLUGIN_PANIC"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, got := explain(c.err)
			var reasons []string
			for _, p := range got {
				reasons = append(reasons, p.Reason)
			}
			if code != c.code || strings.Join(reasons, " ") != c.reasons {
				t.Errorf("got %v, %v", code, got)
			}
		})
	}
}

func at(offset, length int64) Region { return Region{Offset: offset, Length: length} }

func TestMemory(t *testing.T) {
	fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), "test")
	defer func() { _ = file.Close() }()
	page := int64(os.Getpagesize())
	if err := file.Truncate(5 * page); err != nil {
		t.Fatal(err)
	}
	m := newMemory(file)
	for _, bad := range []Region{at(0, page), at(page+64, page), at(page, 0), at(page, -page), at(page, 5*page), at(-page, page), at(page, 1<<62)} {
		if problems, _ := diag.Of(m.attach(bad)); len(problems) != 1 || problems[0].Reason != "REGION" {
			t.Errorf("%+v was attached: %v", bad, problems)
		}
	}
	for _, r := range []Region{at(page, 2*page), at(3*page, 2*page)} {
		if err := m.attach(r); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name   string
		region Region
		ok     bool
	}{
		{"all of a range", at(page, 2*page), true},
		{"nothing at its end", at(3*page, 0), true},
		{"second range", at(3*page+64, 2*page-64), true},
		{"across ranges", at(page+64, 2*page), false},
		{"control block", at(0, 64), false},
		{"odd", at(page+8, 8), false},
		{"past the end", at(5*page, 64), false},
		{"negative", at(page, -1), false},
		{"overflow", at(page, 1<<63-1), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := m.Bytes(c.region)
			if (err == nil) != c.ok || (c.ok && (int64(len(b)) != c.region.Length || cap(b) != len(b))) {
				t.Errorf("%d bytes, %v", len(b), err)
			}
		})
	}
	b, err := m.Tensor(Placed{Spec: tensor.Spec{Name: "x", DType: tensor.Int16, Sizes: []int64{3}}, Region: at(page, 6)})
	if err != nil || len(b) != 6 {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	_, err = m.Tensor(Placed{Spec: tensor.Spec{Name: "x", DType: tensor.Int16, Sizes: []int64{3}}, Region: at(page, 5)})
	if err == nil || err.Error() != "x: REGION: int16[3] takes 6 bytes, its region has 5" {
		t.Errorf("a region that is too small: %v", err)
	}
	b[5] = 7
	var got [1]byte
	if _, err := file.ReadAt(got[:], page+5); err != nil || got[0] != 7 {
		t.Errorf("not shared: %v, %v", got, err)
	}
	if len(m.Ranges()) != 2 || &m.Ranges()[0][0] != &b[0] {
		t.Error("a range moved")
	}
	for _, r := range m.Ranges() {
		if err := unix.Munmap(r); err != nil {
			t.Error(err)
		}
	}
}

// A step is one only where everything in the control block says so.
func TestControlBlock(t *testing.T) {
	for _, c := range []struct {
		name           string
		at             int
		value          uint32
		inputs, output int
		reason, says   string
	}{
		{"a step", atInput, 1, 2, 1, "", ""},
		{"another magic", atMagic, controlMagic + 1, 2, 1, "WIRE", "magic 0x54424d54, layout 1, command 1"},
		{"another layout", atLayout, 2, 2, 1, "WIRE", "layout 2"},
		{"another command", atCommand, 2, 2, 1, "WIRE", "command 2"},
		{"before Prepare", atInput, 0, 0, 0, "WRONG_ORDER", "before a good Prepare"},
		{"no such inputs", atInput, 2, 2, 1, "BANK", "input bank 2: Prepare gave 2"},
		{"no such outputs", atOutput, 1, 2, 1, "BANK", "output bank 1: Prepare gave 1"},
		{"a number that looks negative", atInput, 1 << 31, 2, 1, "BANK", "input bank 2147483648"},
	} {
		a := &counter{t: t, inputs: c.inputs, output: c.output}
		l := &loop{arm: a, control: make([]byte, controlBytes), inputs: c.inputs, outputs: c.output}
		little.PutUint32(l.control[atMagic:], controlMagic)
		little.PutUint32(l.control[atLayout:], controlLayout)
		little.PutUint32(l.control[atCommand:], commandStep)
		little.PutUint32(l.control[c.at:], c.value)
		err := l.runStep()
		problems, _ := diag.Of(err)
		if c.reason == "" && (err != nil || a.steps != 1) ||
			c.reason != "" && (len(problems) != 1 || problems[0].Reason != c.reason || !strings.Contains(problems[0].Summary, c.says) || a.steps != 0) {
			t.Errorf("%s: %d steps, %v", c.name, a.steps, err)
		}
	}
}

// Calls run in their order on the arm's thread. One whose caller has gone by its turn is left out, and nobody waits for it.
func TestQueue(t *testing.T) {
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(wake) }()
	l := &loop{wake: wake}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	var ran []string
	if err := l.do(gone, func() error { ran = append(ran, "gone"); return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	broken, answers := errors.New("broken"), make(chan error)
	for i, f := range []func() error{func() error { ran = append(ran, "first"); return broken }, func() error { ran = append(ran, "second"); panic("third") }} {
		go func() { answers <- l.do(t.Context(), f) }()
		for queued := 0; queued < i+2; {
			l.mu.Lock()
			queued = len(l.queue)
			l.mu.Unlock()
			runtime.Gosched()
		}
	}
	l.calls()
	var panicked *panicError
	for range 2 {
		if err := <-answers; !errors.Is(err, broken) && !errors.As(err, &panicked) {
			t.Errorf("%v", err)
		}
	}
	if strings.Join(ran, " ") != "first second" || panicked == nil || len(l.queue) != 0 {
		t.Errorf("%q, %v", ran, panicked)
	}
	if n, err := unix.Read(wake, make([]byte, 8)); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("the thread is woken again: %d, %v", n, err)
	}
}

// pairOf is a certificate of its own authority, and its key, in PEM.
func pairOf(t *testing.T) (certificate, key string) {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, secret.Public(), secret)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
}

// handed reads credentials as the host hands them over.
func handed(t *testing.T, text string) (*tls.Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return readCredentials(file)
}

// Nobody but the host is served.
func TestCredentials(t *testing.T) {
	certificate, key := pairOf(t)
	host, hostKey := pairOf(t)
	other, otherKey := pairOf(t)
	text := func(certificate, key, ca string) string {
		data, err := json.Marshal(map[string]string{"certificate": certificate, "key": key, "ca": ca})
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	config, err := handed(t, text(certificate, key, host))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(certificate))
	for _, c := range []struct {
		name             string
		certificate, key string
		version          uint16
		served           bool
	}{
		{"the host", host, hostKey, tls.VersionTLS13, true},
		{"one without a certificate", "", "", tls.VersionTLS13, false},
		{"another host", other, otherKey, tls.VersionTLS13, false},
		{"an old version", host, hostKey, tls.VersionTLS12, false},
	} {
		client := &tls.Config{RootCAs: roots, ServerName: "localhost", MaxVersion: c.version}
		if c.certificate != "" {
			pair, err := tls.X509KeyPair([]byte(c.certificate), []byte(c.key))
			if err != nil {
				t.Fatal(err)
			}
			client.Certificates = []tls.Certificate{pair}
		}
		here, there := net.Pipe()
		go func() {
			connection := tls.Client(there, client)
			if connection.Handshake() == nil {
				_, _ = connection.Read(make([]byte, 1)) // the server's word on our certificate comes behind the handshake
			}
			_ = there.Close()
		}()
		if err := tls.Server(here, config).Handshake(); (err == nil) != c.served {
			t.Errorf("%s: %v", c.name, err)
		}
		_ = here.Close()
	}
	for name, bad := range map[string]string{
		"nothing": "", "no JSON": "{", "no key": text(certificate, "", host), "another's key": text(certificate, otherKey, host), "no host": text(certificate, key, ""),
	} {
		if config, err := handed(t, bad); config != nil || err == nil || !strings.HasPrefix(err.Error(), "credentials: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
