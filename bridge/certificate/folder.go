package certificate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"samebits/bridge/atomicfile"
	"samebits/bridge/diag"
	"samebits/bridge/wholefile"
	"samebits/goldens"
)

// BuiltIn is the trust that is built into this program: goldens/certificates/keys.
func BuiltIn() (Trust, error) {
	return ParseTrust(goldens.CertificateKeys, "goldens/certificates/keys")
}

// File is a certificate's file.
type File struct {
	Path string
	Data []byte
}

// ReadFile reads a certificate's file, unless it is too long to be one.
func ReadFile(path string) (File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return File{}, fmt.Errorf("certificate: %w", err)
	}
	if info.Size() > Limit {
		return File{}, diag.New(Unreadable, path, "it has %d bytes; a certificate has at most %d", info.Size(), Limit)
	}
	data, err := wholefile.Read(path, Limit)
	return File{path, data}, err
}

// ReadFolder reads all certificates below a folder, in the order of their paths. A folder that is missing has none. Files that
// cannot be read are left out: the error names each of them.
func ReadFolder(folder string) ([]File, error) {
	var files []File
	var wrong []error
	if _, err := os.Stat(folder); os.IsNotExist(err) {
		return nil, nil
	}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, Extension) || strings.HasPrefix(d.Name(), ".") {
			return err
		}
		data, err := wholefile.ReadRegular(path, Limit)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("certificate: %w", err))
			return nil
		}
		files = append(files, File{path, data})
		return nil
	})
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return files, errors.Join(append(wrong, err)...)
}

// Keep writes a signed certificate to its place below a folder and gives its path.
func (p Predicate) Keep(folder string, data []byte) (string, error) {
	path := filepath.Join(folder, filepath.FromSlash(p.File()))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	return path, atomicfile.WriteBytes(path, data)
}
