package certificate

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"samebits/bridge/atomicfile"
	"samebits/bridge/diag"
	"samebits/bridge/wholefile"
)

// KeyID names a public key: sha256 of its DER form (SubjectPublicKeyInfo), as openssl pkey -pubin -outform DER | sha256sum
// prints it.
func KeyID(key ed25519.PublicKey) string {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		panic(err) // an ed25519 key can be written
	}
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// Trusted is a key whose signatures count.
type Trusted struct {
	Name     string
	Public   ed25519.PublicKey
	NotAfter time.Time
}

// Trust is the keys whose signatures count.
type Trust []Trusted

func (t Trust) find(id string) (Trusted, bool) {
	best, found := Trusted{}, false
	for _, k := range t { // the same key may be trusted by two lists
		if KeyID(k.Public) == id && (!found || k.NotAfter.After(best.NotAfter)) {
			best, found = k, true
		}
	}
	return best, found
}

// trustFile is a list of trusted keys as it is kept.
type trustFile struct {
	Schema int         `json:"schema"`
	Keys   []trustLine `json:"keys"`
}

type trustLine struct {
	Name      string    `json:"name"`
	KeyID     string    `json:"keyid"`
	PublicKey string    `json:"public_key"` // PEM
	NotAfter  time.Time `json:"not_after"`
}

// ParseTrust reads a list of trusted keys.
func ParseTrust(data []byte, file string) (Trust, error) {
	var list trustFile
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.DisallowUnknownFields()
	if err := d.Decode(&list); err != nil {
		return nil, diag.New(TrustInvalid, file, "it is no list of keys: %v", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, diag.New(TrustInvalid, file, "something comes behind the list of keys")
	}
	if list.Schema != 1 {
		return nil, diag.New(TrustInvalid, file, "it has schema %d; this program knows 1", list.Schema)
	}
	var t Trust
	for i, line := range list.Keys {
		at := fmt.Sprintf("%s: keys[%d]", file, i)
		public, err := ParsePublic([]byte(line.PublicKey), at)
		if err != nil {
			return nil, err
		}
		if !nameForm.MatchString(line.Name) || line.KeyID != KeyID(public) || line.NotAfter.IsZero() {
			return nil, diag.New(TrustInvalid, at, "it lacks a name or an end, or its keyid is not that of its key")
		}
		t = append(t, Trusted{line.Name, public, line.NotAfter})
	}
	return t, nil
}

// Text writes a list of trusted keys.
func (t Trust) Text() ([]byte, error) {
	list := trustFile{Schema: 1, Keys: []trustLine{}}
	for _, k := range t {
		list.Keys = append(list.Keys, trustLine{k.Name, KeyID(k.Public), string(PublicPEM(k.Public)), k.NotAfter.UTC()})
	}
	data, err := json.MarshalIndent(list, "", "  ")
	return append(data, '\n'), err
}

// PublicPEM writes a public key.
func PublicPEM(key ed25519.PublicKey) []byte {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		panic(err) // an ed25519 key can be written
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

// ParsePublic reads a public key.
func ParsePublic(data []byte, at string) (ed25519.PublicKey, error) {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "PUBLIC KEY" {
		return nil, diag.New(KeyInvalid, at, "it holds no public key in PEM form")
	}
	any, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, diag.New(KeyInvalid, at, "%v", err)
	}
	key, ok := any.(ed25519.PublicKey)
	if !ok {
		return nil, diag.New(KeyInvalid, at, "it is no ed25519 key")
	}
	return key, nil
}

// Keyring is a folder with a user's keys: NAME.pem, private; NAME.pub; and trusted.json.
type Keyring struct{ Folder string }

// FolderVariable names the folder of keys in the environment.
const FolderVariable = "SAMEBITS_KEYS"

// UserKeyring is the one of the user, or of SAMEBITS_KEYS.
func UserKeyring() (Keyring, error) {
	if folder := os.Getenv(FolderVariable); folder != "" {
		return Keyring{folder}, nil
	}
	config, err := os.UserConfigDir()
	if err != nil {
		return Keyring{}, diag.New(KeyMissing, "", "there is no folder for keys (%v); name one by %s", err, FolderVariable)
	}
	return Keyring{filepath.Join(config, "samebits", "keys")}, nil
}

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}$`)

// New makes a key pair. The private one can be read by its owner alone.
func (k Keyring) New(name string) (ed25519.PublicKey, error) {
	if !nameForm.MatchString(name) {
		return nil, diag.New(KeyInvalid, "", "%q is no name for a key: letters, digits and _.@- are", name)
	}
	if err := os.MkdirAll(k.Folder, 0o700); err != nil {
		return nil, err
	}
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(k.private(name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, diag.New(KeyThere, k.private(name), "there is a key of that name; it is never overwritten")
	} else if err != nil {
		return nil, err
	}
	err = pem.Encode(file, &pem.Block{Type: "PRIVATE KEY", Bytes: der})
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return nil, errors.Join(err, os.Remove(k.private(name))) // a part of a key would be in the way of the next one
	}
	return public, atomicfile.WriteBytes(k.public(name), PublicPEM(public))
}

func (k Keyring) private(name string) string { return filepath.Join(k.Folder, name+".pem") }
func (k Keyring) public(name string) string  { return filepath.Join(k.Folder, name+".pub") }
func (k Keyring) trusted() string            { return filepath.Join(k.Folder, "trusted.json") }

// Names lists the private keys.
func (k Keyring) Names() []string {
	files, _ := filepath.Glob(filepath.Join(k.Folder, "*.pem")) // the pattern is one
	var names []string
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".pem"))
	}
	return names
}

// Private reads a private key; an empty name is that of the only one.
func (k Keyring) Private(name string) (ed25519.PrivateKey, error) {
	if name == "" {
		names := k.Names()
		if len(names) != 1 {
			return nil, diag.New(KeyMissing, k.Folder, "there are %d keys; make one by `parity keys new NAME`, or name one by --key", len(names))
		}
		name = names[0]
	}
	file := k.private(name)
	if strings.ContainsRune(name, filepath.Separator) || strings.HasSuffix(name, ".pem") {
		file = name
	}
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, diag.New(KeyMissing, file, "there is no such key; `parity keys list` shows those that are")
	} else if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, diag.New(KeyExposed, file, "others may read it (mode %#o): chmod 600", mode)
	}
	data, err := wholefile.Read(file, Limit)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, diag.New(KeyInvalid, file, "it holds no private key in PEM form")
	}
	any, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := any.(ed25519.PrivateKey)
	if err != nil || !ok {
		return nil, diag.New(KeyInvalid, file, "it is no ed25519 key in PKCS#8 form")
	}
	return key, nil
}

// Trust reads whom the user trusts; no file is an empty list.
func (k Keyring) Trust() (Trust, error) {
	data, err := wholefile.Read(k.trusted(), Limit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return ParseTrust(data, k.trusted())
}

// Add trusts a key until its end. One of the same name or with the same key gives way.
func (k Keyring) Add(t Trusted) error {
	if !nameForm.MatchString(t.Name) {
		return diag.New(KeyInvalid, "", "%q is no name for a key: letters, digits and _.@- are", t.Name)
	}
	all, err := k.Trust()
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(o Trusted) bool { return o.Name == t.Name || o.Public.Equal(t.Public) })
	return k.write(append(all, t))
}

// Remove trusts a key no more, by its name or keyid.
func (k Keyring) Remove(name string) error {
	all, err := k.Trust()
	if err != nil {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(all), func(o Trusted) bool { return o.Name == name || KeyID(o.Public) == name })
	if len(left) == len(all) {
		return diag.New(KeyMissing, k.trusted(), "nobody of the name %s is trusted", name)
	}
	return k.write(left)
}

func (k Keyring) write(t Trust) error {
	if err := os.MkdirAll(k.Folder, 0o700); err != nil {
		return err
	}
	data, err := t.Text()
	if err != nil {
		return err
	}
	return atomicfile.WriteBytes(k.trusted(), data)
}

// Public is the public half of a private key.
func Public(key ed25519.PrivateKey) ed25519.PublicKey { return key.Public().(ed25519.PublicKey) }
