package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"samebits/bridge/certificate"
	"samebits/bridge/wholefile"
	"samebits/parity/launch"
	"samebits/parity/result"
)

// certificatesVariable names the folder of certificates in the environment.
const certificatesVariable = certificate.Variable

// certificateFolder is where certificates are, if nobody says where.
func certificateFolder() string {
	if folder := os.Getenv(certificatesVariable); folder != "" {
		return folder
	}
	return filepath.Join("goldens", "certificates")
}

// certificatesIn reads the certificates of a folder. Those that cannot be read are named, and are as good as none.
func (a *app) certificatesIn(folder string) []certificate.File {
	files, err := certificate.ReadFolder(folder)
	a.notCounted(err)
	return files
}

// notCounted names certificates that cannot be read.
func (a *app) notCounted(err error) {
	if err != nil {
		fmt.Fprintf(a.err, "not counted: %v\n", strings.ReplaceAll(err.Error(), "\n", "\nnot counted: "))
	}
}

// trustFlags say what certificates are held against.
type trustFlags struct {
	environment string
	profile     string
	trust       []string
}

func (f *trustFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.environment, "environment", "here", "here: this machine's; none: do not ask; or a result's file: the one that it was made in")
	flags.StringVar(&f.profile, "profile", "exact-1", "numerics profile, with --environment here")
	flags.StringSliceVar(&f.trust, "trust", nil, "lists of trusted keys, instead of parity's own and the user's")
}

// question makes what the flags ask for.
func (a *app) question(ctx context.Context, f trustFlags) (certificate.Question, error) {
	q := certificate.Question{Now: time.Now()}
	var err error
	if q.Trust, err = trusted(f.trust); err != nil {
		return q, usageError{err}
	}
	switch f.environment {
	case "none":
		return q, nil
	case "here":
		q.Here, err = a.here(ctx, f.profile)
		return q, err
	}
	r, err := result.Read(f.environment)
	if err != nil {
		return q, usagef("--environment: %w", err)
	}
	q.Here = &certificate.Here{Key: certificate.KeyOf(r.Environment, r.Digests.Recording), Profile: r.Profile}
	return q, nil
}

// trusted reads lists of keys: those that are named, else the one that is built in, and the user's.
func trusted(files []string) (certificate.Trust, error) {
	var all certificate.Trust
	for _, file := range files {
		data, err := wholefile.Read(file, certificate.Limit)
		if err != nil {
			return nil, err
		}
		t, err := certificate.ParseTrust(data, file)
		if err != nil {
			return nil, err
		}
		all = append(all, t...)
	}
	if len(files) > 0 {
		return all, nil
	}
	return certificate.Trusting()
}

// here looks at this machine. What cannot be found out is left out, and said where a certificate asks for it.
func (a *app) here(ctx context.Context, profile string) (*certificate.Here, error) {
	b, err := a.start()
	if err != nil {
		return nil, err
	}
	defer b.Close()
	environment, problem := environmentOn(ctx, b, "")
	h := &certificate.Here{Profile: profile, Problem: problem, Key: certificate.KeyOf(environment, "")}
	if h.Trainer, err = b.TrainerBuild(); err != nil {
		h.Trainer = "unknown"
	}
	return h, nil
}

// environmentOn gives the environment of one device, or of the first GPU that can be used, or why there is none.
func environmentOn(ctx context.Context, b backend, device string) (environment map[string]string, problem string) {
	environment, problem = map[string]string{}, "none was found"
	devices, err := b.Devices(ctx)
	if err != nil {
		problem = firstLine(err.Error())
	}
	for _, d := range devices {
		if !strings.HasPrefix(d.Name, "cuda:") || device != "" && d.Name != device {
			continue
		}
		if d.Problem != "" {
			problem = firstLine(d.Problem)
			continue
		}
		environment, problem = settings(d), ""
		break
	}
	if info, err := b.Inspect(ctx); err == nil {
		environment["torch"], environment["torch_revision"] = info.Torch.Version, info.Torch.Revision
	}
	if environment["engine_build"], err = b.EngineBuild(); err != nil {
		environment["engine_build"] = ""
	}
	return environment, problem
}

func settings(d launch.Device) map[string]string {
	all := map[string]string{}
	for _, s := range d.Environment {
		all[s.Key] = s.Value
	}
	return all
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
