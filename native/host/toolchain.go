package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"samebits/bridge/diag"
	"samebits/bridge/ownfolder"
)

// flags are those of every kernel file. -ffp-contract=off keeps every rounding point where the text has it. A frame must
// fit a fiber's stack (shim/fiber.h), which has no guard.
var flags = []string{
	"-std=c++17", "-x", "c++", "-O3", "-march=x86-64-v3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math",
	"-fvisibility=hidden", "-fno-exceptions", "-fno-rtti", "-fPIC", "-shared", "-Wl,--as-needed",
	"-Wno-attributes", "-Wno-unknown-pragmas", "-Werror=frame-larger-than=49152",
}

// compileLimit is far more than a file needs on a busy machine.
const compileLimit = 5 * time.Minute

// A toolchain is a C++ compiler that was found.
type toolchain struct {
	command []string // CXX may hold arguments: ccache g++
	version string   // first line of --version
	full    string   // all of it: part of the cache key
}

// findToolchain takes CXX, or the first of g++, c++ and clang++ that is installed.
func findToolchain() (*toolchain, error) {
	var candidates [][]string
	if cxx := strings.Fields(os.Getenv("CXX")); len(cxx) > 0 {
		candidates = [][]string{cxx}
	} else {
		candidates = [][]string{{"g++"}, {"c++"}, {"clang++"}}
	}
	for _, command := range candidates {
		path, err := exec.LookPath(command[0])
		if err != nil {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		args := append(append([]string{}, command[1:]...), "--version")
		out, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
		if err != nil {
			return nil, diag.Problems{{Reason: "BAD_COMPILER", Path: strings.Join(command, " "),
				Summary: fmt.Sprintf("the C++ compiler does not run: %v", err), Detail: firstLines(string(out), 3)}}
		}
		first, _, _ := strings.Cut(string(out), "\n")
		return &toolchain{append([]string{path}, command[1:]...), strings.TrimSpace(first), string(out)}, nil
	}
	tried := make([]string, len(candidates))
	for i, c := range candidates {
		tried[i] = c[0]
	}
	return nil, diag.Problems{{Reason: "NO_COMPILER", Path: "host",
		Summary: "no C++ compiler: tried " + strings.Join(tried, ", "),
		Detail:  "install g++ (Debian and Ubuntu: apt-get install g++; Fedora: dnf install gcc-c++) or set CXX"}}
}

// compile compiles one kernel file with its headers and gives the library's bytes.
func (t *toolchain) compile(file, text string, headers map[string]string) ([]byte, error) {
	own, err := ownfolder.New(os.TempDir(), "compile")
	if err != nil {
		return nil, err
	}
	defer own.Remove()
	release, err := guard()
	if err != nil {
		return nil, err
	}
	defer release()
	dir := own.Path
	source := file + ".cu"
	for name, content := range headers {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, source), []byte(text), 0o600); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), compileLimit)
	defer cancel()
	args := append(append([]string{}, t.command[1:]...), flags...)
	args = append(args, "-I.", "-include", "cuda_host.h", source, "-o", "library.so", "-lm")
	cmd := exec.CommandContext(ctx, t.command[0], args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "TMPDIR="+dir) // the compiler's own files lie there, too
	cmd.WaitDelay = time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("it took longer than %v", compileLimit)
		}
		var exit *exec.ExitError
		if !errors.As(err, &exit) && ctx.Err() == nil {
			return nil, fmt.Errorf("host: starting %s: %w", t.command[0], err)
		}
		return nil, diag.Problems{{Reason: "COMPILE_FAILED", Path: source,
			Summary: fmt.Sprintf("%s: %v", filepath.Base(t.command[0]), err), Detail: firstError(stderr.String(), 12)}}
	}
	return os.ReadFile(filepath.Join(dir, "library.so"))
}

// firstError gives up to n lines from the first error on; warnings may come before it.
func firstError(text string, n int) string {
	if before, _, ok := strings.Cut(text, "error:"); ok {
		text = text[strings.LastIndex(before, "\n")+1:]
	}
	return firstLines(text, n)
}

func firstLines(text string, n int) string {
	lines := strings.SplitAfterN(text, "\n", n+1)
	return strings.TrimSpace(strings.Join(lines[:min(n, len(lines))], ""))
}
