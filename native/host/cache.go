package host

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
	"lukechampine.com/blake3"

	"samebits/bridge/atomicfile"
)

// A cache keeps compiled kernel files by the content that they depend on. An entry ends in a digest of itself, so a torn or
// damaged one is seen and made again. The folder may be shared by processes; without one nothing is kept.
type cache struct{ dir string }

// openCache makes the folder if need be. With dir empty it takes SAMEBITS_CACHE or else the user's cache folder.
func openCache(dir string) cache {
	if dir == "" {
		dir = os.Getenv("SAMEBITS_CACHE")
	}
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return cache{}
		}
		dir = filepath.Join(user, "samebits")
	}
	dir = filepath.Join(dir, "host")
	if os.MkdirAll(dir, 0o700) != nil {
		return cache{}
	}
	return cache{dir}
}

// cacheKey names a compiled file.
func cacheKey(t *toolchain, file, text string, headers map[string]string) string {
	h := blake3.New(32, nil)
	add := func(s string) {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(s))))
		h.Write([]byte(s))
	}
	add("samebits host library 1")
	for _, s := range t.command {
		add(s)
	}
	add(t.full)
	for _, s := range flags {
		add(s)
	}
	add(file)
	add(text)
	names := make([]string, 0, len(headers))
	for name := range headers {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		add(name)
		add(headers[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (c cache) path(key string) string { return filepath.Join(c.dir, key+".so") }

// get gives a library, or nil if there is no whole one.
func (c cache) get(key string) []byte {
	if c.dir == "" {
		return nil
	}
	data, err := os.ReadFile(c.path(key))
	if err != nil || len(data) < 32 {
		return nil
	}
	library, want := data[:len(data)-32], data[len(data)-32:]
	if sum := blake3.Sum256(library); !bytes.Equal(sum[:], want) {
		return nil
	}
	now := time.Now()
	_ = os.Chtimes(c.path(key), now, now) // for prune
	return library
}

// unused is how long an entry stays that nobody reads.
const unused = 30 * 24 * time.Hour

// prune removes entries that were not used for long: kernels of other versions.
func (c cache) prune() {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && e.Type().IsRegular() && time.Since(info.ModTime()) > unused {
			_ = os.Remove(filepath.Join(c.dir, e.Name()))
		}
	}
}

// put keeps a library. A cache that cannot be written is no error: the library is compiled again next time.
func (c cache) put(key string, library []byte) {
	if c.dir == "" {
		return
	}
	sum := blake3.Sum256(library)
	_ = atomicfile.WriteCache(c.path(key), append(bytes.Clone(library), sum[:]...))
}

// lockPatience is how long a process waits for another one that compiles. The lock only saves work.
const lockPatience = 90 * time.Second

// lock makes other processes wait that are about to compile the same files, so that they find them here. It is a
// courtesy: who waited long enough compiles without it.
func (c cache) lock() (unlock func()) {
	nothing := func() {}
	if c.dir == "" {
		return nothing
	}
	f, err := os.OpenFile(filepath.Join(c.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nothing // a folder that cannot be written holds nothing to wait for
	}
	for until := time.Now().Add(lockPatience); ; time.Sleep(50 * time.Millisecond) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }
		}
		if (err != unix.EWOULDBLOCK && err != unix.EINTR) || time.Now().After(until) {
			f.Close()
			return nothing
		}
	}
}
