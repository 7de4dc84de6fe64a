package main

import (
	"fmt"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"samebits/bridge/certificate"
	"samebits/bridge/wholefile"
)

func (a *app) keys() *cobra.Command {
	c := &cobra.Command{
		Use:   "keys",
		Short: "Make keys, and say whose certificates count",
		Long: `keys keeps the user's keys: private ones to sign certificates with, and a list of public ones whose certificates count here.
They lie in $` + certificate.FolderVariable + `, or in samebits/keys of the user's configuration. Beside that list counts the one that is built into this program
(goldens/certificates/keys).`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var until string
	untilFlag := func(c *cobra.Command) {
		c.Flags().StringVar(&until, "until", "", "last day on which it is trusted, as 2027-12-31 (default: a year from now)")
	}
	create := &cobra.Command{
		Use:     "new NAME",
		Short:   "Make a key pair, and trust it",
		Example: "  parity keys new alice",
		Args:    cobra.ExactArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return a.newKey(args[0], until) },
	}
	untilFlag(create)
	var name string
	trust := &cobra.Command{
		Use:     "trust FILE.pub",
		Short:   "Trust a public key",
		Example: "  parity keys trust alice.pub --name alice --until 2027-12-31",
		Args:    cobra.ExactArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return a.trustKey(args[0], name, until) },
	}
	untilFlag(trust)
	trust.Flags().StringVar(&name, "name", "", "whose it is")
	untrust := &cobra.Command{
		Use:     "untrust NAME|KEYID",
		Short:   "Trust a key no more",
		Example: "  parity keys untrust alice",
		Args:    cobra.ExactArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return untrustKey(args[0]) },
	}
	var asJSON bool
	list := &cobra.Command{
		Use:   "list",
		Short: "List the keys",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return a.listKeys(asJSON) },
	}
	list.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a key")
	c.AddCommand(create, list, trust, untrust)
	for _, sub := range c.Commands() {
		wrapArgs(sub)
	}
	return c
}

// asUsage makes an error one of usage.
func asUsage(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}

// endOf reads a day that is not past; its end is meant, in UTC.
func endOf(until string) (time.Time, error) {
	if until == "" {
		return time.Now().UTC().Add(certificate.Lifetime).Truncate(time.Second), nil
	}
	day, err := time.Parse(time.DateOnly, until)
	if err != nil {
		return day, usagef("--until %q: it is a day, as 2027-12-31", until)
	}
	end := day.Add(24*time.Hour - time.Second)
	if end.Before(time.Now()) {
		return end, usagef("--until %s: that day is past; parity keys untrust is for a key that shall not count", until)
	}
	return end, nil
}

func (a *app) newKey(name, until string) error {
	end, err := endOf(until)
	if err != nil {
		return err
	}
	ring, err := certificate.UserKeyring()
	if err != nil {
		return err
	}
	if _, err := ring.Trust(); err != nil { // no key is made that cannot be put on the list
		return asUsage(err)
	}
	public, err := ring.New(name)
	if err != nil {
		return asUsage(err)
	}
	if err := ring.Add(certificate.Trusted{Name: name, Public: public, NotAfter: end}); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "%s: %s, trusted here until %s, in %s\n", name, certificate.KeyID(public), end.Format(time.DateOnly), ring.Folder)
	return nil
}

func (a *app) trustKey(file, name, until string) error {
	end, err := endOf(until)
	if err != nil {
		return err
	}
	if name == "" {
		return usagef("say whose it is by --name")
	}
	data, err := wholefile.Read(file, certificate.Limit)
	if err != nil {
		return asUsage(err)
	}
	public, err := certificate.ParsePublic(data, file)
	if err != nil {
		return asUsage(err)
	}
	ring, err := certificate.UserKeyring()
	if err != nil {
		return err
	}
	return asUsage(ring.Add(certificate.Trusted{Name: name, Public: public, NotAfter: end}))
}

func untrustKey(name string) error {
	ring, err := certificate.UserKeyring()
	if err != nil {
		return err
	}
	err = ring.Remove(name)
	if err == nil {
		return nil
	}
	builtIn, _ := certificate.BuiltIn() // what is wrong with it says parity keys list
	if slices.ContainsFunc(builtIn, func(k certificate.Trusted) bool { return k.Name == name || certificate.KeyID(k.Public) == name }) {
		return usagef("%s is built into this program and stays trusted; --trust FILE of a command names the keys that count instead", name)
	}
	return asUsage(err)
}

// keyLine is a key as it is listed.
type keyLine struct {
	Name     string `json:"name"`
	KeyID    string `json:"keyid,omitempty"`
	Trusted  string `json:"trusted_until,omitempty"`
	Expired  bool   `json:"expired,omitempty"`
	BuiltIn  bool   `json:"built_in,omitempty"`
	Private  bool   `json:"private,omitempty"` // the private one is here
	Problems string `json:"problem,omitempty"`
}

func (a *app) listKeys(asJSON bool) error {
	ring, err := certificate.UserKeyring()
	if err != nil {
		return err
	}
	builtIn, err := certificate.BuiltIn()
	if err != nil {
		return err
	}
	own, err := ring.Trust()
	if err != nil {
		return asUsage(err)
	}
	private := map[string]string{} // name by keyid
	var lines []keyLine
	for _, name := range ring.Names() {
		key, err := ring.Private(name)
		if err != nil {
			lines = append(lines, keyLine{Name: name, Private: true, Problems: err.Error()})
			continue
		}
		private[certificate.KeyID(certificate.Public(key))] = name
	}
	for i, k := range slices.Concat(builtIn, own) {
		id := certificate.KeyID(k.Public)
		_, has := private[id]
		delete(private, id)
		lines = append(lines, keyLine{Name: k.Name, KeyID: id, Trusted: k.NotAfter.Format(time.DateOnly), Expired: time.Now().After(k.NotAfter),
			BuiltIn: i < len(builtIn), Private: has})
	}
	for id, name := range private {
		lines = append(lines, keyLine{Name: name, KeyID: id, Private: true})
	}
	slices.SortStableFunc(lines, func(a, b keyLine) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	if len(lines) == 0 {
		fmt.Fprintf(a.err, "there is no key, neither built in nor in %s; parity keys new NAME makes one\n", ring.Folder)
	}
	table := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for _, l := range lines {
		if asJSON {
			if err := a.line(l); err != nil {
				return err
			}
			continue
		}
		trust := "not trusted"
		if l.Trusted != "" {
			trust = "trusted until " + l.Trusted
		}
		if l.Expired {
			trust = "was " + trust
		}
		if l.BuiltIn {
			trust += ", built in"
		}
		if l.Private {
			trust += ", private key here"
		}
		if l.Problems != "" {
			trust = l.Problems
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", l.Name, l.KeyID, trust)
	}
	return table.Flush()
}
