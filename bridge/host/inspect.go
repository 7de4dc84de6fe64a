package host

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// machines names our architecture as ELF files do.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64, "ppc64le": elf.EM_PPC64, "riscv64": elf.EM_RISCV}

// Inspect says in advance why a program could not be started as a plugin. Nil promises nothing: Start says what only it can know.
func Inspect(plugin, command string) error {
	if _, refused := inspect(command); refused != nil {
		refused.Plugin = plugin
		return refused
	}
	return nil
}

// inspect finds a plugin's program and says in advance why it could not run: the system's own answer is
// "no such file" for three different reasons.
func inspect(command string) (string, *Error) {
	path, err := find(command)
	if err != nil {
		return "", err
	}
	if absolute, err := filepath.Abs(path); err == nil { // Config.Dir shall not change what a relative path means
		path = absolute
	}
	info, statErr := os.Stat(path)
	if statErr != nil {
		return "", &Error{Reason: ReasonMissing, Summary: fmt.Sprintf("cannot look at %s: %v", path, statErr), cause: statErr}
	}
	if info.IsDir() {
		return "", &Error{Reason: ReasonNotExecutable, Summary: path + " is a folder"}
	}
	if info.Mode()&0o111 == 0 {
		return "", &Error{Reason: ReasonNotExecutable,
			Summary: fmt.Sprintf("%s is not executable: its mode is %v", path, info.Mode()), Detail: "try: chmod +x " + path}
	}
	file, openErr := os.Open(path)
	if openErr != nil { // executable but not readable: the system may still run it
		return path, nil
	}
	defer func() { _ = file.Close() }()
	head := make([]byte, 256)
	n, _ := file.ReadAt(head, 0) // a short file is a finding of its own
	head = head[:n]
	switch {
	case bytes.HasPrefix(head, []byte(elf.ELFMAG)):
		return path, inspectELF(path, file)
	case bytes.HasPrefix(head, []byte("#!")):
		return path, inspectScript(path, head)
	}
	return path, &Error{Reason: ReasonFormat, Summary: fmt.Sprintf("%s is %s", path, kindOf(head)),
		Detail: "a plugin is a Linux program, or a script whose first line names its interpreter after #!"}
}

func find(command string) (string, *Error) {
	if strings.Contains(command, "/") {
		if _, err := os.Stat(command); errors.Is(err, fs.ErrNotExist) {
			return "", &Error{Reason: ReasonMissing, Summary: command + " does not exist", cause: err}
		}
		return command, nil
	}
	path, err := exec.LookPath(command)
	if err != nil {
		return "", &Error{Reason: ReasonMissing, Summary: fmt.Sprintf("no program %q in PATH", command),
			Detail: "PATH is " + os.Getenv("PATH"), cause: err}
	}
	return path, nil
}

func inspectELF(path string, file *os.File) *Error {
	program, err := elf.NewFile(file)
	if err != nil {
		return &Error{Reason: ReasonFormat, Summary: fmt.Sprintf("%s is a torn ELF file: %v", path, err), cause: err}
	}
	if want, known := machines[runtime.GOARCH]; known && program.Machine != want {
		return &Error{Reason: ReasonArchitecture,
			Summary: fmt.Sprintf("%s was made for %v, this machine is %v (%s)", path, program.Machine, want, runtime.GOARCH)}
	}
	for _, segment := range program.Progs {
		if segment.Type != elf.PT_INTERP || segment.Filesz > 4096 {
			continue
		}
		name := make([]byte, segment.Filesz)
		if _, err := segment.ReadAt(name, 0); err != nil {
			return &Error{Reason: ReasonFormat, Summary: fmt.Sprintf("%s is a torn ELF file: %v", path, err), cause: err}
		}
		loader := string(bytes.TrimRight(name, "\x00"))
		if _, err := os.Stat(loader); err != nil {
			return &Error{Reason: ReasonInterpreter, Summary: fmt.Sprintf("%s needs the loader %s: %v", path, loader, err), cause: err,
				Detail: "it was built for another C library or distribution"}
		}
	}
	return nil
}

func inspectScript(path string, head []byte) *Error {
	line, _, _ := strings.Cut(string(head[2:]), "\n")
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return &Error{Reason: ReasonFormat, Summary: path + " names no interpreter after #!"}
	}
	if _, err := os.Stat(fields[0]); err != nil {
		return &Error{Reason: ReasonInterpreter, Summary: fmt.Sprintf("%s is a script for %s: %v", path, fields[0], err), cause: err}
	}
	return nil
}

func kindOf(head []byte) string {
	for _, kind := range []struct{ magic, name string }{
		{"MZ", "a Windows program"}, {"\xcf\xfa\xed\xfe", "a macOS program"}, {"\xca\xfe\xba\xbe", "a macOS program"},
		{"PK\x03\x04", "a zip archive"}, {"\x1f\x8b", "a gzip archive"},
	} {
		if bytes.HasPrefix(head, []byte(kind.magic)) {
			return kind.name
		}
	}
	if len(head) == 0 {
		return "an empty file"
	}
	if bytes.IndexByte(head, 0) < 0 {
		return "a text file without a #! line"
	}
	return "no program of a known kind"
}
