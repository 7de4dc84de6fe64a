package serve

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// ends are what the host hands to a plugin at its start.
type ends struct {
	memory *os.File
	step   int // a blocking socket, used by the arm's thread alone
	life   *os.File
	tls    *tls.Config
}

// inherit finds the descriptors that the host made, and keeps them from the plugin's own children.
func inherit() (*ends, error) {
	var problems error
	take := func(variable string) int {
		text := os.Getenv(variable)
		fd, err := strconv.Atoi(text)
		if err != nil || fd < 0 {
			problems = errors.Join(problems, fmt.Errorf("%s is %q, not the number of a descriptor", variable, text))
			return -1
		}
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, unix.FD_CLOEXEC); err != nil {
			problems = errors.Join(problems, fmt.Errorf("%s: descriptor %d: %w", variable, fd, err))
		}
		_ = os.Unsetenv(variable) // fails for bad names only
		return fd
	}
	memory, step := take("SAMEBITS_FD_MEMORY"), take("SAMEBITS_FD_STEP")
	keys, life := take("SAMEBITS_FD_TLS"), take("SAMEBITS_FD_LIFE")
	if problems != nil {
		return nil, problems
	}
	e := &ends{memory: os.NewFile(uintptr(memory), "shared memory"), step: step, life: os.NewFile(uintptr(life), "life pipe")}
	var err error
	e.tls, err = readCredentials(os.NewFile(uintptr(keys), "credentials pipe"))
	return e, err
}

// readCredentials reads the certificates that the host made for the two of us.
func readCredentials(file *os.File) (*tls.Config, error) {
	data, err := io.ReadAll(file)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	var keys struct{ Certificate, Key, CA string }
	if err := json.Unmarshal(data, &keys); err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	certificate, err := tls.X509KeyPair([]byte(keys.Certificate), []byte(keys.Key))
	if err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	host := x509.NewCertPool()
	if !host.AppendCertsFromPEM([]byte(keys.CA)) {
		return nil, errors.New("credentials: no certificate of the host")
	}
	return &tls.Config{Certificates: []tls.Certificate{certificate}, ClientAuth: tls.RequireAndVerifyClientCert,
		ClientCAs: host, MinVersion: tls.VersionTLS13}, nil
}

// dieWithHost waits for the end of the life pipe, which no living host closes.
func (e *ends) dieWithHost() {
	var b [1]byte
	for {
		n, err := e.life.Read(b[:])
		if n == 0 && err != nil {
			fmt.Fprintln(stderr, "the host is gone")
			os.Exit(1)
		}
	}
}
