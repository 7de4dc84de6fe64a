package cuda

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"

	"lukechampine.com/blake3"

	"samebits/bridge/atomicfile"
)

// CacheVariable names the folder of compiled kernels and of cuDNN's choices (PlansVariable).
const CacheVariable = "SAMEBITS_CACHE"

// CacheFolder is where cubins and choices are kept: what SAMEBITS_CACHE says, or samebits in the user's cache folder. It is empty
// if there is neither; nothing is kept then.
func CacheFolder() string {
	if folder := os.Getenv(CacheVariable); folder != "" {
		return folder
	}
	if folder, err := os.UserCacheDir(); err == nil {
		return filepath.Join(folder, "samebits")
	}
	return ""
}

// cache keeps cubins by the digest of all that decides about them. A file is a line with the digest of the rest, and
// the cubin. The cache never fails: what cannot be read is compiled again.
type cache struct {
	folder string
	log    func(line string)
}

const cacheMagic = "samebits-cubin-1 "

// cacheKey digests its arguments, each with its length, so that no two lists run together.
func cacheKey(toolchain, text string, headers map[string]string, options []string) string {
	h := blake3.New(32, nil)
	part := func(s string) {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		io.WriteString(h, s)
	}
	part(toolchain)
	part(text)
	names := make([]string, 0, len(headers))
	for name := range headers {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		part(name)
		part(headers[name])
	}
	part(fmt.Sprint(len(options)))
	for _, option := range options {
		part(option)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (c cache) path(key string) string { return filepath.Join(c.folder, key+".cubin") }

// get gives an entry if it is there and whole. name is the kernel file, for the log.
func (c cache) get(key, name string) (cubin []byte, ok bool) {
	if c.folder == "" {
		return nil, false
	}
	data, err := os.ReadFile(c.path(key))
	if os.IsNotExist(err) {
		return nil, false
	}
	if err != nil {
		c.log(fmt.Sprintf("kernel %s: cache entry unreadable, compiling again: %v", name, err))
		return nil, false
	}
	line, cubin, _ := bytes.Cut(data, []byte("\n"))
	if string(line) != checksumLine(cubin) {
		c.log(fmt.Sprintf("kernel %s: cache entry %s is damaged, compiling again", name, c.path(key)))
		return nil, false
	}
	return cubin, true
}

// put writes an entry so that a reader sees all of it or nothing.
func (c cache) put(key string, cubin []byte) {
	if c.folder == "" {
		return
	}
	if err := c.write(key, cubin); err != nil {
		c.log(fmt.Sprintf("compiled kernels are not kept: %v", err))
	}
}

func (c cache) write(key string, cubin []byte) error {
	if err := os.MkdirAll(c.folder, 0o755); err != nil {
		return err
	}
	return atomicfile.WriteCache(c.path(key), append([]byte(checksumLine(cubin)+"\n"), cubin...))
}

func checksumLine(cubin []byte) string {
	sum := blake3.Sum256(cubin)
	return cacheMagic + hex.EncodeToString(sum[:])
}
