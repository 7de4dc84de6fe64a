package cuda

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func testCache(t *testing.T, folder string) (cache, *[]string) {
	t.Helper()
	lines := &[]string{}
	return cache{folder: folder, log: func(line string) { *lines = append(*lines, line) }}, lines
}

func TestCacheKeeps(t *testing.T) {
	c, lines := testCache(t, filepath.Join(t.TempDir(), "deep", "er"))
	if _, ok := c.get("key", "silu"); ok {
		t.Error("an empty cache gives something")
	}
	cubin := []byte("\x7fELF\nwith a line break\x00")
	c.put("key", cubin)
	got, ok := c.get("key", "silu")
	if !ok || !bytes.Equal(got, cubin) {
		t.Errorf("%q, %v", got, ok)
	}
	if len(*lines) != 0 {
		t.Errorf("log: %q", *lines)
	}
	entries, err := os.ReadDir(c.folder)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v: temporary files stay", entries, err)
	}
}

func TestCacheRefusesDamage(t *testing.T) {
	cubin := []byte("\x7fELF and more")
	for _, test := range []struct {
		name   string
		damage func([]byte) []byte
	}{
		{"a flipped bit", func(b []byte) []byte { b[len(b)-1] ^= 1; return b }},
		{"a truncated file", func(b []byte) []byte { return b[:len(b)-3] }},
		{"an empty file", func([]byte) []byte { return nil }},
		{"another checksum", func(b []byte) []byte { b[len(cacheMagic)] ^= 1; return b }},
		{"something else", func([]byte) []byte { return []byte("<html>\n</html>") }},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, lines := testCache(t, t.TempDir())
			c.put("key", cubin)
			data, err := os.ReadFile(c.path("key"))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(c.path("key"), test.damage(data), 0o644); err != nil {
				t.Fatal(err)
			}
			if got, ok := c.get("key", "silu"); ok {
				t.Errorf("the damaged entry is given: %q", got)
			}
			if len(*lines) != 1 || !strings.Contains((*lines)[0], "kernel silu: cache entry") {
				t.Errorf("log: %q, one line is wanted", *lines)
			}
			c.put("key", cubin)
			if got, ok := c.get("key", "silu"); !ok || !bytes.Equal(got, cubin) {
				t.Errorf("not rebuilt: %q, %v", got, ok)
			}
		})
	}
}

func TestCacheThatCannotWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	touch(t, file)
	c, lines := testCache(t, filepath.Join(file, "below"))
	c.put("key", []byte("cubin"))
	if _, ok := c.get("key", "silu"); ok {
		t.Error("something was kept below a file")
	}
	if len(*lines) < 1 || !strings.Contains((*lines)[0], "not kept") {
		t.Errorf("log: %q", *lines)
	}
	none, lines := testCache(t, "")
	none.put("key", []byte("cubin"))
	if _, ok := none.get("key", "silu"); ok || len(*lines) != 0 {
		t.Errorf("no folder, but %v, %q", ok, *lines)
	}
}

func TestCacheKey(t *testing.T) {
	type input struct {
		toolchain, text string
		headers         map[string]string
		options         []string
	}
	list := map[string]input{
		"plain":          {"t", "text", nil, []string{"-a"}},
		"toolchain":      {"u", "text", nil, []string{"-a"}},
		"text":           {"t", "texts", nil, []string{"-a"}},
		"option":         {"t", "text", nil, []string{"-b"}},
		"options":        {"t", "text", nil, []string{"-a", "-b"}},
		"header":         {"t", "text", map[string]string{"h": "1"}, []string{"-a"}},
		"header's text":  {"t", "text", map[string]string{"h": "2"}, []string{"-a"}},
		"header's name":  {"t", "text", map[string]string{"g": "1"}, []string{"-a"}},
		"border moved":   {"tt", "ext", nil, []string{"-a"}},
		"header as list": {"t", "text", map[string]string{"h": "1", "i": ""}, []string{"-a"}},
	}
	seen := map[string]string{}
	for name, in := range list {
		key := cacheKey(in.toolchain, in.text, in.headers, in.options)
		if other, taken := seen[key]; taken {
			t.Errorf("%s and %s have one key", name, other)
		}
		seen[key] = name
		if key != cacheKey(in.toolchain, in.text, in.headers, in.options) {
			t.Errorf("%s has two keys", name)
		}
	}
}

func TestCacheFolder(t *testing.T) {
	t.Setenv(CacheVariable, "")
	t.Setenv("XDG_CACHE_HOME", "/somewhere")
	if got := CacheFolder(); got != "/somewhere/samebits" {
		t.Error(got)
	}
	t.Setenv(CacheVariable, "/else")
	if got := CacheFolder(); got != "/else" {
		t.Error(got)
	}
}
