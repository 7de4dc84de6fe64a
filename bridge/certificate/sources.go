package certificate

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"samebits/bridge/diag"
	"samebits/goldens"
)

// Variable names, in the environment, the certificates that count: a file, or a folder with all below it.
const Variable = "SAMEBITS_CERTIFICATES"

// Find reads the certificates that count for who predicts or trains: those of path, a file or a folder; without one, of
// SAMEBITS_CERTIFICATES; without that, those that were built in.
func Find(path string) ([]File, error) {
	if path == "" {
		path = os.Getenv(Variable)
	}
	if path == "" {
		return Packaged()
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, diag.New("CERTIFICATES_MISSING", path, "%v", errors.Unwrap(err))
	}
	if info.IsDir() {
		return ReadFolder(path)
	}
	file, err := ReadFile(path)
	return []File{file}, err
}

// Packaged are the certificates that were in goldens/certificates when this program was built.
func Packaged() ([]File, error) {
	var files []File
	err := fs.WalkDir(goldens.Certificates, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, Extension) {
			return err
		}
		data, err := goldens.Certificates.ReadFile(path)
		files = append(files, File{Path: "goldens/" + path, Data: data})
		return err
	})
	return files, err
}

// Trusting is whom this user trusts: the list that is built in, and his own.
func Trusting() (Trust, error) {
	all, err := BuiltIn()
	if err != nil {
		return nil, err
	}
	ring, err := UserKeyring()
	if err != nil {
		return all, nil // there is no user's folder, so nobody trusts anything there
	}
	own, err := ring.Trust()
	return append(all, own...), err
}
