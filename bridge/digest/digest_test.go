package digest_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"samebits/bridge/digest"
	"samebits/bridge/tensor"
)

func floats(fs ...float32) []byte {
	var b bytes.Buffer
	_ = binary.Write(&b, binary.LittleEndian, fs)
	return b.Bytes()
}

func ramp(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 7)
	}
	return b
}

// The expected values come from the Python package blake3, given the header and the bytes.
var vectors = []struct {
	name  string
	dtype tensor.DType
	sizes []int64
	data  []byte
	want  string
}{
	{"scalar", tensor.Float32, nil, floats(1.5), "bdd2633f2fd55a1577ebbbf474c3be7ea9167c4c625915be7c4d67d8690a1d93"},
	{"matrix", tensor.Float32, []int64{2, 3}, floats(0, 1, 2, 3, 4, 5), "639cbe31718bde019f368e84410405826c1bfa0d44486024037f16bbfb4ece46"},
	{"same bytes, other shape", tensor.Float32, []int64{3, 2}, floats(0, 1, 2, 3, 4, 5), "6bc61e99d622fb16fed0035c82c77d33130685c1aab87a08cecd592cf0ebfc37"},
	{"same bytes, other dtype", tensor.Int32, []int64{2, 3}, floats(0, 1, 2, 3, 4, 5), "75b9110327242f5597f22898698a3764315115978f744db470fb199d5797cb34"},
	{"negative zero and nan", tensor.BFloat16, []int64{2}, []byte{0, 0x80, 0xc0, 0x7f}, "ded70bba0195fd805606e4e5944ba9861a99eae7903c5afb8b6b4304655fc159"},
	{"bool", tensor.Bool, []int64{3}, []byte{1, 0, 1}, "30d5bbfab1a9964c204c1582d4afce1215a2250f626bf280bca5c967b7e5efe6"},
	{"empty", tensor.Int64, []int64{0}, nil, "7408e310bdb6496e000d535d3ce5731a6cd9cb31698a3f2fbc69544136f6828f"},
	{"larger than a chunk", tensor.Uint8, []int64{70000}, ramp(70000), "f0d9c6b3f14d1c7e56b477b1f1d518f69210ee1f7fffecbf21b56e4bf5e9fe55"},
}

func TestTensor(t *testing.T) {
	for _, v := range vectors {
		t.Run(v.name, func(t *testing.T) {
			spec := tensor.Spec{Name: "ignored", DType: v.dtype, Sizes: v.sizes}
			if got := digest.Tensor(spec, v.data); got != v.want {
				t.Errorf("Tensor = %s, want %s", got, v.want)
			}
			h := digest.New(spec)
			for part := v.data; len(part) > 0; {
				n := min(len(part), 1021)
				if _, err := h.Write(part[:n]); err != nil {
					t.Fatal(err)
				}
				part = part[n:]
			}
			if got := h.Sum(); got != v.want {
				t.Errorf("in pieces = %s, want %s", got, v.want)
			}
		})
	}
}

func TestBytes(t *testing.T) {
	for text, want := range map[string]string{
		"":         "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
		"samebits": "2259e3aa4a3052f3fdb05b7c4643a652ed593004bef79916d3f144e6ce4c3dd5",
	} {
		if got := digest.Bytes([]byte(text)); got != want {
			t.Errorf("Bytes(%q) = %s, want %s", text, got, want)
		}
	}
}

// TestB3sum runs the command of docs/digests.md, where b3sum is installed.
func TestB3sum(t *testing.T) {
	b3sum, err := exec.LookPath("b3sum")
	if err != nil {
		t.Skip("b3sum is not installed")
	}
	for _, v := range vectors {
		t.Run(v.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "tensor")
			header := digest.Header(tensor.Spec{DType: v.dtype, Sizes: v.sizes})
			if err := os.WriteFile(file, append(header, v.data...), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := exec.Command(b3sum, "--no-names", file).Output()
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.TrimSpace(string(out)); got != v.want {
				t.Errorf("b3sum = %s, want %s", got, v.want)
			}
		})
	}
}
