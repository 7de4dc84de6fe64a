package main

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"samebits/bridge/certificate"
	"samebits/bridge/diag"
	grant "samebits/parity/certificate"
	"samebits/parity/gate"
	"samebits/parity/launch"
	"samebits/parity/result"
)

type certifyFlags struct {
	verifyFlags
	key    string
	folder string
	days   int
	json   bool
	resume bool
}

func (a *app) certify() *cobra.Command {
	var f certifyFlags
	c := &cobra.Command{
		Use:   "certify FAMILY...|--all",
		Short: "Verify families, and sign a certificate of each that is exact",
		Long: `certify does what verify does, with the same flags, and signs a certificate of each cell whose verdict is exact. Of every other
cell it says why there is none. It verifies itself, always: a result file proves nothing, for anybody can write one, so
none is taken. Certificates are granted on a GPU alone.

The key is one of parity keys; without --key it is the only one there is.

--resume leaves out cells whose certificate in --output is valid here and now, and was made by these very programs.

Exit status: 0 if every cell is certified; 2 if one was refused; else as of verify.`,
		Example: `  parity keys new alice
  parity certify resnet yolo9 --precision fp32,bf16
  parity certify --all --jobs 4 --key alice --output certificates --resume`,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.runCertify(cmd.Context(), &f, args) },
		ValidArgsFunction: a.completeFamilies,
	}
	f.add(c)
	flags := c.Flags()
	flags.StringVar(&f.key, "key", "", "name of the private key, or its file")
	flags.StringVar(&f.folder, "output", "", "folder for the certificates (default: $"+certificatesVariable+", goldens/certificates)")
	flags.IntVar(&f.days, "days", int(certificate.Lifetime/(24*time.Hour)), "how long the certificates are good for")
	flags.BoolVar(&f.resume, "resume", false, "leave out cells that have a valid certificate in --output, by these very programs")
	flags.BoolVar(&f.json, "json", false, "print one JSON object a cell")
	flags.StringVar(&f.keep, "keep", "", "folder for the recording, weights, inputs and outputs of every cell")
	flags.StringVar(&f.verifyFlags.output, "results", "", "folder for the results")
	flags.BoolVar(&f.all, "all", false, "all cells of the parity list")
	flags.StringSliceVar(&f.groups, "group", []string{launch.Matrix}, "of --all and patterns: groups of the reference plugin's table")
	flags.IntVar(&f.jobs, "jobs", 0, "cells in work at the same time (default: by cores and memory; on the host 1)")
	return c
}

func (a *app) runCertify(ctx context.Context, f *certifyFlags, families []string) error {
	for _, name := range families {
		if strings.HasSuffix(name, ".json") || strings.ContainsRune(name, filepath.Separator) && isFile(name) {
			return usageError{diag.New(grant.NoProof, name, "a result file cannot be certified, for nothing shows that it was not edited; %s", again(name))}
		}
	}
	if err := f.check(families); err != nil {
		return err
	}
	if f.days <= 0 || f.days > 3650 {
		return usagef("--days %d: a certificate is good for 1 to 3650 days", f.days)
	}
	ring, err := certificate.UserKeyring()
	if err != nil {
		return err
	}
	key, err := ring.Private(f.key) // before anything takes its time
	if err != nil {
		return usageError{err}
	}
	folder := f.folder
	if folder == "" {
		folder = certificateFolder()
	}
	if err := errors.Join(checkNew("--output", folder), makeFolder("--results", f.verifyFlags.output)); err != nil {
		return err
	}
	f.exactly = f.resume
	c, err := a.prepare(ctx, &f.verifyFlags, families, "verifying on the device host, where nothing can be certified")
	if err != nil {
		return err
	}
	s := &certifier{app: a, backend: c.backend, key: key, folder: folder, lifetime: time.Duration(f.days) * 24 * time.Hour, json: f.json,
		recordings: map[int][]byte{}}
	quiet := *a
	if f.json {
		quiet.out = io.Discard
	}
	c.app, c.certifier = &quiet, s
	if f.resume {
		if err := c.leaveCertified(ctx, folder); err != nil || len(c.cells) == 0 {
			c.backend.Close()
			return err
		}
	}
	if err := c.run(ctx); err != nil {
		return err
	}
	if s.refused > 0 {
		return statusError(result.ExitRefused)
	}
	return nil
}

// again is the command that certifies what a result file says it is of.
func again(file string) string {
	r, err := result.Read(file)
	if err != nil {
		return "certify verifies itself: parity certify FAMILY"
	}
	return "certify verifies itself: " + strings.Replace(r.Reproduce, "parity verify", "parity certify", 1)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// certifier signs what a campaign of this process finds exact.
type certifier struct {
	app      *app
	backend  backend
	key      ed25519.PrivateKey
	folder   string
	lifetime time.Duration
	json     bool
	refused  int

	mu         sync.Mutex
	recordings map[int][]byte // by the number of the cell
}

func (s *certifier) saw(cell int, file []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recordings[cell] = file
}

// certified is what is said of a cell with --json.
type certified struct {
	Cell        certificate.Cell `json:"cell"`
	Verdict     result.Verdict   `json:"verdict"`
	Certificate string           `json:"certificate,omitempty"`
	Problems    []result.Problem `json:"problems,omitempty"`
}

// finished signs one result, or says why not. Its calls come one after the other.
func (s *certifier) finished(cell int, r result.Result) error {
	s.mu.Lock()
	file := s.recordings[cell]
	delete(s.recordings, cell)
	s.mu.Unlock()
	said := certified{Verdict: r.Verdict, Cell: certificate.Cell{Family: r.Family, Size: r.Size, Task: r.Task, ImgSize: r.ImgSize, Batch: r.Batch,
		Mode: r.Mode, Precision: r.Precision}}
	path, err := s.sign(r, file)
	problems, known := diag.Of(err)
	if err != nil && !known {
		return err
	}
	said.Certificate = path
	if err != nil {
		s.refused++
		said.Problems = result.Problems(problems)
	}
	if s.json {
		e := json.NewEncoder(s.app.out)
		e.SetEscapeHTML(false)
		return e.Encode(said)
	}
	if err == nil {
		fmt.Fprintf(s.app.out, "  certified as %s\n", path)
	}
	for _, p := range problems {
		fmt.Fprintf(s.app.out, "  not certified: %v\n", p)
	}
	return nil
}

func (s *certifier) sign(r result.Result, file []byte) (string, error) {
	var engine []byte
	if r.Verdict == result.Exact {
		find := s.backend.Predictor
		if r.Mode == gate.Train {
			find = s.backend.Trainer
		}
		program, err := find()
		if err == nil {
			engine, err = os.ReadFile(program)
		}
		if err != nil {
			return "", fmt.Errorf("the engine that was verified: %w", err)
		}
	}
	now := time.Now()
	statement, err := grant.Grant(r, grant.Evidence{Recording: file, Engine: engine}, now, s.lifetime)
	if err != nil {
		return "", err
	}
	data, err := statement.Sign(s.key)
	if err != nil {
		return "", err
	}
	// What was written must be what anybody accepts who trusts the key.
	self := certificate.Trust{{Name: "self", Public: certificate.Public(s.key), NotAfter: now.Add(time.Hour)}}
	if _, err := certificate.Check(data, certificate.Question{Now: now, Trust: self}); err != nil {
		return "", fmt.Errorf("the certificate does not verify: %w", err)
	}
	return statement.Predicate.Keep(s.folder, data)
}
