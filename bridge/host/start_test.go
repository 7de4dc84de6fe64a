package host_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"debug/elf"
	"encoding/binary"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"samebits/bridge/diag"
	"samebits/bridge/host"
	"samebits/bridge/recording"
)

func setting(key, value string) recording.Setting { return recording.Setting{Key: key, Value: value} }

func TestStartFails(t *testing.T) {
	for _, c := range []struct {
		name   string
		config func(t testing.TB) host.Config
		reason string
		says   []string
	}{
		{"missing file", file("", 0, true), host.ReasonMissing, []string{"does not exist"}},
		{"missing in PATH", named("samebits-no-such-plugin"), host.ReasonMissing, []string{"samebits-no-such-plugin", "PATH"}},
		{"folder", func(t testing.TB) host.Config { return host.Config{Command: t.TempDir()} }, host.ReasonNotExecutable, []string{"folder"}},
		{"not executable", file("#!/bin/sh\n", 0o640, false), host.ReasonNotExecutable, []string{"-rw-r-----", "chmod +x"}},
		{"text without interpreter", file("just words\n", 0o755, false), host.ReasonFormat, []string{"text file without a #! line"}},
		{"empty file", file("", 0o755, false), host.ReasonFormat, []string{"empty file"}},
		{"Windows program", file("MZ\x00\x00", 0o755, false), host.ReasonFormat, []string{"Windows"}},
		{"missing interpreter", file("#!/no/such/python3\n", 0o755, false), host.ReasonInterpreter, []string{"/no/such/python3"}},
		{"other architecture", file(foreignELF(), 0o755, false), host.ReasonArchitecture, []string{"EM_S390", "EM_"}},
		{"torn ELF", file("\x7fELF\x02\x01", 0o755, false), host.ReasonFormat, []string{"torn"}},
		{"script without interpreter", file("#!\n", 0o755, false), host.ReasonFormat, []string{"names no interpreter"}},
		{"script that ends", file("#!/bin/sh\necho torch is missing >&2\nexit 3\n", 0o755, false), host.ReasonExited, []string{"exit status 3", "torch is missing"}},
		{"missing loader", withoutLoader, host.ReasonInterpreter, []string{"needs the loader /lib64/no-", "another C library"}},
		{"archive", file("PK\x03\x04\x00", 0o755, false), host.ReasonFormat, []string{"a zip archive"}},
		{"bytes", file("\x00\x01", 0o755, false), host.ReasonFormat, []string{"no program of a known kind"}},
		{"below a file", func(t testing.TB) host.Config {
			c := file("", 0o755, false)(t)
			c.Command += "/plugin"
			return c
		}, host.ReasonMissing, []string{"cannot look at"}},
		{"missing folder to run in", func(t testing.TB) host.Config {
			c := config(t, "good")
			c.Dir = filepath.Join(t.TempDir(), "missing")
			return c
		}, host.ReasonStart, []string{"the system refused to start it", "no such file"}},
		{"garbage", role("garbage"), host.ReasonHandshake, []string{`"Hello, I am [31mnot[0m a plugin"`, "handshake"}},
		{"garbage, then exit", role("garbage-and-exit"), host.ReasonHandshake, []string{"usage: thing", "exit status 64"}},
		{"a line without end", role("endless-line"), host.ReasonHandshake, []string{"xxx…"}},
		{"exits", role("exits"), host.ReasonExited, []string{"exit status 3", "libgone.so"}},
		{"exits well", role("exits-well"), host.ReasonExited, []string{"exit status 0", "a plugin at all"}},
		{"says nothing", quick(role("silent")), host.ReasonStartDeadline, []string{"within 300ms", "thinking"}},
		{"other handshake version", role("other-handshake"), host.ReasonProtocol, []string{"handshake 1.2", "speaks 1.1"}},
		{"other wire version", role("other-wire"), host.ReasonProtocol, []string{"futuristic 9.9 speaks wire protocol 7", "host speaks 1"}},
		{"nobody listens", role("not-listening"), host.ReasonConnection, []string{"nobody"}},
		{"foreign certificate", role("foreign-certificate"), host.ReasonConnection, []string{"certificate"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			leavesNothing(t)
			began := time.Now()
			p, err := host.Start(t.Context(), c.config(t))
			if err == nil {
				t.Fatalf("it started: %+v; Stop: %v", p.Description(), p.Stop())
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("it took %v", took)
			}
			var e *host.Error
			if !errors.As(err, &e) || e.Reason != c.reason || e.Plugin == "" {
				t.Fatalf("got %#v, want reason %s", err, c.reason)
			}
			if ps, ok := diag.Of(err); !ok || ps[0].Reason != c.reason {
				t.Errorf("problems %v", ps)
			}
			exits := map[string]int{"garbage, then exit": 64, "exits": 3, "exits well": 0, "script that ends": 3}
			if code, exits := exits[c.name]; (e.Exit != nil) != exits || exits && e.Exit.Code != code {
				t.Errorf("it ended by itself: %v", e.Exit)
			}
			for _, s := range c.says {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("%q is not in: %v", s, err)
				}
			}
			if strings.Contains(err.Error(), "\x1b") {
				t.Errorf("control characters came through: %q", err.Error())
			}
		})
	}
}

// What can be said in advance is said without a start.
func TestInspect(t *testing.T) {
	if err := host.Inspect("p", config(t, "good").Command); err != nil {
		t.Errorf("a good program: %v", err)
	}
	var e *host.Error
	if err := host.Inspect("p", "/nowhere/plugin"); !errors.As(err, &e) || e.Plugin != "p" || e.Reason != host.ReasonMissing {
		t.Errorf("a missing one: %v", err)
	}
}

// A socket's path is short whatever the folder for temporary files; where there is none, nothing is left of the start.
func TestFolderForSockets(t *testing.T) {
	leavesNothing(t)
	long := filepath.Join(t.TempDir(), strings.Repeat("long", 20))
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", long)
	if err := start(t, config(t, "good")).Stop(); err != nil {
		t.Error(err)
	}
	t.Setenv("TMPDIR", "/no/such")
	if _, err := host.Start(t.Context(), config(t, "good")); !errors.Is(err, os.ErrNotExist) || !strings.HasPrefix(err.Error(), "plugin good: ") {
		t.Errorf("got %v", err)
	}
}

func TestStartInterrupted(t *testing.T) {
	leavesNothing(t)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(150*time.Millisecond, cancel)
	began := time.Now()
	_, err := host.Start(ctx, config(t, "silent"))
	if !errors.Is(err, context.Canceled) || time.Since(began) > time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
}

func TestInterruptedBeforeStart(t *testing.T) {
	leavesNothing(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := host.Start(ctx, config(t, "good")); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func role(name string) func(testing.TB) host.Config {
	return func(t testing.TB) host.Config { return config(t, name) }
}

func named(command string) func(testing.TB) host.Config {
	return func(testing.TB) host.Config { return host.Config{Command: command} }
}

func quick(of func(testing.TB) host.Config) func(testing.TB) host.Config {
	return func(t testing.TB) host.Config {
		c := of(t)
		c.StartDeadline = 300 * time.Millisecond
		return c
	}
}

func file(content string, mode os.FileMode, missing bool) func(testing.TB) host.Config {
	return func(t testing.TB) host.Config {
		path := filepath.Join(t.TempDir(), "plugin")
		if !missing {
			if err := os.WriteFile(path, []byte(content), mode); err != nil {
				t.Fatal(err)
			}
		}
		return host.Config{Command: path}
	}
}

// withoutLoader is a program of this machine that names a loader which is not here.
func withoutLoader(t testing.TB) host.Config {
	program, err := os.ReadFile("/bin/true")
	if err != nil || !bytes.Contains(program, []byte("/lib64/ld-")) {
		t.Skipf("/bin/true names no loader below /lib64: %v", err)
	}
	return file(string(bytes.Replace(program, []byte("/lib64/ld-"), []byte("/lib64/no-"), 1)), 0o755, false)(t)
}

// foreignELF is the head of a program for a machine that runs none of our tests.
func foreignELF() string {
	head := make([]byte, 64)
	copy(head, elf.ELFMAG+"\x02\x01\x01")
	binary.LittleEndian.PutUint16(head[16:], uint16(elf.ET_EXEC))
	binary.LittleEndian.PutUint16(head[18:], uint16(elf.EM_S390))
	binary.LittleEndian.PutUint32(head[20:], 1)
	binary.LittleEndian.PutUint16(head[52:], 64)
	binary.LittleEndian.PutUint16(head[54:], 56)
	binary.LittleEndian.PutUint16(head[58:], 64)
	return string(head)
}

// foreignTLS is a certificate that the host never made.
func foreignTLS() (*tls.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, err
}
