package cuda

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// touch makes empty files.
func touch(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// torchFolders lays out what torch's wheels of CUDA 13 do.
func torchFolders(t *testing.T, site string) (cuda, cudnn string) {
	t.Helper()
	cuda, cudnn = filepath.Join(site, "nvidia/cu13/lib"), filepath.Join(site, "nvidia/cudnn/lib")
	for _, name := range []string{"libnvrtc-builtins.so.13.0", "libnvrtc-builtins.alt.so.13.0", "libnvrtc.so.13",
		"libnvrtc.alt.so.13", "libcublas.so.13", "libcublasLt.so.13"} {
		touch(t, filepath.Join(cuda, name))
	}
	for _, name := range []string{"libcudnn.so.9", "libcudnn_adv.so.9", "libcudnn_ops.so.9", "libcudnn_graph.so.9"} {
		touch(t, filepath.Join(cudnn, name))
	}
	touch(t, filepath.Join(site, "nvidia/cu13/include/cuda_bf16.h"), filepath.Join(site, "nvidia/cu13/include/cuda_fp16.h"))
	return cuda, cudnn
}

func TestLocate(t *testing.T) {
	cuda, cudnn := torchFolders(t, t.TempDir())
	found, problems := Locate([]string{cuda, cudnn})
	if len(problems) != 0 {
		t.Fatal(problems)
	}
	for _, test := range []struct{ got, want string }{
		{found.NVRTC, cuda + "/libnvrtc.so.13"},
		{found.NVRTCBuiltins, cuda + "/libnvrtc-builtins.so.13.0"},
		{found.Cublas, cuda + "/libcublas.so.13"},
		{found.CublasLt, cuda + "/libcublasLt.so.13"},
		{found.Cudnn, cudnn + "/libcudnn.so.9"},
		{found.Include, filepath.Join(filepath.Dir(cuda), "include")},
	} {
		if test.got != test.want {
			t.Errorf("%s, want %s", test.got, test.want)
		}
	}
	parts := []string{cudnn + "/libcudnn_graph.so.9", cudnn + "/libcudnn_ops.so.9", cudnn + "/libcudnn_adv.so.9"}
	if !slices.Equal(found.CudnnParts, parts) {
		t.Errorf("parts %v, want %v", found.CudnnParts, parts)
	}
}

func TestLocatePrefersTheFirstFolder(t *testing.T) {
	root := t.TempDir()
	torch, system := filepath.Join(root, "torch"), filepath.Join(root, "system")
	touch(t, filepath.Join(torch, "libcudnn.so.9"), filepath.Join(system, "libcudnn.so.9"), filepath.Join(system, "libcudnn.so.9.14.0"))
	for _, test := range []struct {
		folders []string
		want    string
	}{
		{[]string{torch, system}, torch + "/libcudnn.so.9"},
		{[]string{system, torch}, system + "/libcudnn.so.9"},
		{[]string{root, torch}, torch + "/libcudnn.so.9"},
	} {
		if found, _ := Locate(test.folders); found.Cudnn != test.want {
			t.Errorf("%v: %s, want %s", test.folders, found.Cudnn, test.want)
		}
	}
	touch(t, filepath.Join(torch, "libcudnn.so.10"))
	if found, _ := Locate([]string{torch}); found.Cudnn != torch+"/libcudnn.so.10" {
		t.Errorf("the newest is not taken: %s", found.Cudnn)
	}
}

func TestLocateListsWhatIsMissing(t *testing.T) {
	_, problems := Locate([]string{"/nowhere/lib"})
	if len(problems) != 6 {
		t.Errorf("%d problems, want one each of five libraries and the headers", len(problems))
	}
	mustHave(t, problems.Err(), "libnvrtc-builtins.so.*", "libcublas.so.* is in none of /nowhere/lib", "/nowhere/include")
	_, problems = Locate(nil)
	mustHave(t, problems.Err(), "was looked for nowhere", FoldersVariable)
}

func TestFolders(t *testing.T) {
	venv := t.TempDir()
	cuda, cudnn := torchFolders(t, filepath.Join(venv, "lib/python3.12/site-packages"))
	want := []string{cuda, cudnn, filepath.Join(venv, "lib/python3.12/site-packages/torch/lib")}
	t.Setenv(FoldersVariable, "")
	t.Setenv("VIRTUAL_ENV", venv)
	if got := Folders(); !slices.Equal(got, want) {
		t.Errorf("by VIRTUAL_ENV: %v, want %v", got, want)
	}

	t.Setenv("VIRTUAL_ENV", "")
	t.Setenv("PATH", filepath.Join(venv, "bin"))
	touch(t, filepath.Join(venv, "bin/python3"))
	if err := os.Chmod(filepath.Join(venv, "bin/python3"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got := Folders(); !slices.Equal(got, want) {
		t.Errorf("by python3: %v, want %v", got, want)
	}

	t.Setenv(FoldersVariable, "/a:/b")
	if got := Folders(); !slices.Equal(got, []string{"/a", "/b"}) {
		t.Errorf("by %s: %v", FoldersVariable, got)
	}
	if got := FoldersBeside(t.TempDir()); got != nil {
		t.Errorf("an empty prefix has %v", got)
	}
}

func TestDriverVersion(t *testing.T) {
	folder := t.TempDir()
	module, proc, absent := filepath.Join(folder, "version"), filepath.Join(folder, "proc"), filepath.Join(folder, "absent")
	if err := os.WriteFile(module, []byte("580.159.03\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	line := "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (dvs-builder)\n"
	if err := os.WriteFile(proc, []byte(line), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ module, proc, want string }{
		{module, proc, "580.159.03"}, {absent, proc, "580.95.05"}, {absent, absent, "unknown"},
	} {
		if got := driverVersion(test.module, test.proc); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}
