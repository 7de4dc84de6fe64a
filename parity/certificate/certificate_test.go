package certificate_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"samebits/bridge/certificate"
	"samebits/bridge/diag"
	"samebits/bridge/digest"
	"samebits/bridge/recording"
	"samebits/goldens"
	grant "samebits/parity/certificate"
	"samebits/parity/gate"
	"samebits/parity/result"
	"samebits/parity/schedule"
	"samebits/parity/suite"
	"samebits/parity/suite/suitetest"
)

var rewrite = flag.Bool("rewrite", false, "write goldens/FLAGS.md anew")

var (
	engine = []byte("an engine's program")
	key    = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
	made   = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
)

func trust() certificate.Trust {
	return certificate.Trust{{Name: "alice", Public: certificate.Public(key), NotAfter: made.Add(1000 * time.Hour)}}
}

// machine is what the fakes say of where they run.
var machine = map[string]string{"gpu": "NVIDIA H200", "gpu.arch": "sm_90", "gpu.sms": "132", "driver": "580.159.04", "cuda": "13.0",
	"cublas": "13.1.0", "cublaslt": "13.1.0", "nvrtc": "13.0", "torch": "2.11.0+cu130", "torch_revision": "70d99e998b49"}

// verified is a result of the suite's own with its evidence.
func verified(t testing.TB, mode, device string, faults suitetest.Faults, declare ...recording.Setting) (result.Result, grant.Evidence) {
	t.Helper()
	starter := &suitetest.Starter{Faults: faults, Environment: declare}
	for name, value := range machine {
		starter.Environment = append(starter.Environment, recording.Setting{Key: name, Value: value})
	}
	e := grant.Evidence{Engine: engine}
	s := &suite.Suite{Start: starter, Timing: suite.DefaultTiming(), EngineBuild: digest.Bytes(engine), OnRecording: func(file []byte) { e.Recording = file }}
	c := suite.Cell{Family: "fake", Precision: "fp32", Profile: "exact-1", Device: device, Mode: mode, Batch: 1}
	if mode == gate.Train {
		c.Batch, c.Training = 4, schedule.Default(6)
	}
	return s.Verify(t.Context(), c), e
}

func granted(t testing.TB, mode string) certificate.Statement {
	t.Helper()
	r, e := verified(t, mode, "cuda:0", suitetest.Faults{})
	s, err := grant.Grant(r, e, made, certificate.Lifetime)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func signed(t testing.TB, s certificate.Statement) []byte {
	t.Helper()
	data, err := s.Sign(key)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func here(s certificate.Statement) *certificate.Here {
	return &certificate.Here{Key: maps.Clone(s.Predicate.Key), Profile: "exact-1"}
}

func question(s certificate.Statement) certificate.Question {
	return certificate.Question{Now: made.Add(time.Hour), Trust: trust(), Here: here(s)}
}

// reasons lists the reasons of an error.
func reasons(t testing.TB, err error) []string {
	t.Helper()
	ps, ok := diag.Of(err)
	if err != nil && !ok {
		t.Fatalf("not for people: %v", err)
	}
	var all []string
	for _, p := range ps {
		all = append(all, p.Reason)
	}
	return all
}

// The example of the DSSE specification, protocol.md.
func TestPAE(t *testing.T) {
	for _, c := range []struct{ kind, payload, want string }{
		{"http://example.com/HelloWorld", "hello world", "DSSEv1 29 http://example.com/HelloWorld 11 hello world"},
		{"", "", "DSSEv1 0  0 "},
		{"ä", "\x00\xff", "DSSEv1 2 ä 2 \x00\xff"},
	} {
		if got := string(certificate.PAE(c.kind, []byte(c.payload))); got != c.want {
			t.Errorf("%q instead of %q", got, c.want)
		}
	}
}

func TestValid(t *testing.T) {
	for _, mode := range []string{gate.Predict, gate.Train} {
		s := granted(t, mode)
		c, err := certificate.Check(signed(t, s), question(s))
		if err != nil {
			t.Fatalf("%s: %v", mode, err)
		}
		if c.Predicate.Cell.Family != "fake" || c.Signers[0].Name != "alice" || c.Predicate.Replays["native-graph"].Replays == 0 || len(c.Predicate.Probes) < 2 {
			t.Errorf("%s: %+v", mode, c.Predicate)
		}
		if want := "classify/fake-s-8-b"; !strings.HasPrefix(c.Predicate.File(), want) {
			t.Errorf("%s: file %s", mode, c.Predicate.File())
		}
	}
}

// Every byte counts, in the envelope as in what it holds.
func TestEveryByteCounts(t *testing.T) {
	s := granted(t, gate.Predict)
	data, q := signed(t, s), question(s)
	for i := range data {
		other := bytes.Clone(data)
		other[i] ^= []byte{1, 0x20, 0x80}[i%3]
		if _, err := certificate.Check(other, q); err == nil {
			t.Fatalf("byte %d is %q instead of %q, and nobody minds", i, other[i], data[i])
		}
	}
	for name, other := range map[string][]byte{"empty": nil, "cut": data[:len(data)/2], "longer": append(bytes.Clone(data), '\n'),
		"spaced": bytes.Replace(data, []byte(`{"`), []byte(`{ "`), 1), "twice": append(bytes.Clone(data), data...)} {
		if _, err := certificate.Check(other, q); err == nil {
			t.Errorf("%s: nobody minds", name)
		}
	}
}

func TestReasons(t *testing.T) {
	s := granted(t, gate.Predict)
	file := signed(t, s)
	other := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{8}, ed25519.SeedSize))
	envelope := func(change func(*certificate.Envelope)) []byte {
		var e certificate.Envelope
		if err := json.Unmarshal(file, &e); err != nil {
			t.Fatal(err)
		}
		change(&e)
		data, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		return append(data, '\n')
	}
	at := func(name, value string) func(*certificate.Question) {
		return func(q *certificate.Question) { q.Here.Key[name] = value }
	}
	for _, c := range []struct {
		name   string
		data   []byte
		change func(*certificate.Question)
		want   string
	}{
		{"unsigned", envelope(func(e *certificate.Envelope) { e.Signatures = []certificate.Signature{} }), nil, certificate.Unsigned},
		{"another payload type", envelope(func(e *certificate.Envelope) { e.PayloadType = "text/plain" }), nil, certificate.OtherType},
		{"a result's file", []byte("{\"schema\":1,\"verdict\":\"exact\"}\n"), nil, certificate.Unreadable},
		{"another payload", envelope(func(e *certificate.Envelope) { e.Payload = base64.StdEncoding.EncodeToString([]byte("{}")) }), nil, certificate.BadSignature},
		{"another's signature under a trusted name", envelope(func(e *certificate.Envelope) {
			payload, _ := base64.StdEncoding.DecodeString(e.Payload)
			e.Signatures[0].Sig = base64.StdEncoding.EncodeToString(ed25519.Sign(other, certificate.PAE(e.PayloadType, payload)))
		}), nil, certificate.BadSignature},
		{"a signature without PAE", envelope(func(e *certificate.Envelope) {
			payload, _ := base64.StdEncoding.DecodeString(e.Payload)
			e.Signatures[0].Sig = base64.StdEncoding.EncodeToString(ed25519.Sign(key, payload))
		}), nil, certificate.BadSignature},
		{"an unknown key", file, func(q *certificate.Question) { q.Trust[0].Public = certificate.Public(other) }, certificate.UnknownKey},
		{"trust expired", file, func(q *certificate.Question) { q.Trust[0].NotAfter = q.Now.Add(-time.Second) }, certificate.TrustExpired},
		{"expired", file, func(q *certificate.Question) {
			q.Now, q.Trust[0].NotAfter = made.Add(2*certificate.Lifetime), made.Add(3*certificate.Lifetime)
		}, certificate.Expired},
		{"of tomorrow", file, func(q *certificate.Question) { q.Now = made.Add(-24 * time.Hour) }, certificate.NotYet},
		{"GPU", file, at("gpu", "NVIDIA H100"), certificate.OtherGPU},
		{"part of a GPU", file, at("gpu.sms", "66"), certificate.OtherGPU},
		{"architecture", file, at("gpu.arch", "sm_80"), certificate.OtherGPU},
		{"driver", file, at("driver", "580.159.05"), certificate.OtherDriver},
		{"CUDA", file, at("cuda", "13.1"), certificate.OtherCUDA},
		{"cuDNN", file, at("cudnn", "9.14"), certificate.OtherCUDNN},
		{"cuBLAS", file, at("cublas", "13.2.0"), certificate.OtherCUBLAS},
		{"cuBLASLt", file, at("cublaslt", "13.2.0"), certificate.OtherCUBLAS},
		{"NVRTC", file, at("nvrtc", "13.1"), certificate.OtherNVRTC},
		{"PyTorch", file, at("torch", "2.11.0+cu126"), certificate.OtherTorch},
		{"PyTorch's revision", file, at("torch_revision", "0"), certificate.OtherTorch},
		{"engine", file, at("engine_build", strings.Repeat("0", 64)), certificate.OtherEngine},
		{"recording", file, at("recording", strings.Repeat("0", 64)), certificate.OtherRecording},
		{"profile", file, func(q *certificate.Question) { q.Here.Profile = "exact-2" }, certificate.OtherProfile},
		{"a driver that is not known", file, at("driver", ""), certificate.EnvironmentLess},
		{"no GPU", file, func(q *certificate.Question) { q.Here.Problem = "no driver" }, certificate.NoGPU},
		{"no recording at hand", file, at("recording", ""), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := question(s)
			if c.change != nil {
				c.change(&q)
			}
			_, err := certificate.Check(c.data, q)
			if got := strings.Join(reasons(t, err), " "); got != c.want {
				t.Errorf("%q instead of %q: %v", got, c.want, err)
			}
		})
	}
}

// A certificate is good from a little before it was made, for clocks differ, to its last second; so is trust in its key.
func TestTimes(t *testing.T) {
	s := granted(t, gate.Predict)
	file := signed(t, s)
	p := s.Predicate
	for _, c := range []struct {
		name      string
		now, ends time.Time
		want      string
	}{
		{"a little early", p.Created.Add(-5 * time.Minute), p.Expires, ""},
		{"too early", p.Created.Add(-5*time.Minute - time.Second), p.Expires, certificate.NotYet},
		{"the last moment", p.Expires, p.Expires, ""},
		{"too late", p.Expires.Add(time.Second), p.Expires.Add(time.Hour), certificate.Expired},
		{"the last moment of trust", p.Created, p.Created, ""},
		{"too late for trust", p.Created.Add(time.Second), p.Created, certificate.TrustExpired},
	} {
		q := question(s)
		q.Now, q.Trust[0].NotAfter = c.now, c.ends
		if _, err := certificate.Check(file, q); strings.Join(reasons(t, err), " ") != c.want {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	q := question(s)
	for _, hours := range [][2]time.Duration{{-1, 1}, {1, -1}} { // a key that two lists trust
		q.Trust = nil
		for _, h := range hours {
			q.Trust = append(q.Trust, certificate.Trusted{Name: "alice", Public: certificate.Public(key), NotAfter: q.Now.Add(h * time.Hour)})
		}
		if _, err := certificate.Check(file, q); err != nil {
			t.Errorf("trusted until %v hours from now: %v", hours, err)
		}
	}
}

// A training's certificate is for the program that trains, where that one is known.
func TestTrainersProgram(t *testing.T) {
	another := strings.Repeat("0", 64)
	for _, c := range []struct {
		name, mode string
		change     func(*certificate.Here)
		want       string
	}{
		{"the trainer's", gate.Train, func(h *certificate.Here) { h.Trainer, h.Key["engine_build"] = h.Key["engine_build"], another }, ""},
		{"another trainer", gate.Train, func(h *certificate.Here) { h.Trainer = another }, certificate.OtherEngine},
		{"no trainer", gate.Train, func(h *certificate.Here) { h.Key["engine_build"] = another }, certificate.OtherEngine},
		{"a trainer where nothing is trained", gate.Predict, func(h *certificate.Here) { h.Trainer = another }, ""},
		{"a trainer in the predictor's place", gate.Predict, func(h *certificate.Here) { h.Trainer, h.Key["engine_build"] = h.Key["engine_build"], another }, certificate.OtherEngine},
	} {
		s := granted(t, c.mode)
		q := question(s)
		c.change(q.Here)
		if _, err := certificate.Check(signed(t, s), q); strings.Join(reasons(t, err), " ") != c.want {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// Keys are what is bound: what nobody knows is left out, the native engine's word goes before PyTorch's, and nobody's before the suite's.
func TestKeys(t *testing.T) {
	environment := map[string]string{"gpu": "NVIDIA H200", "driver": " 580 ", "native.driver": "581", "cuda": "13.0", "native.cuda": "13.1", "cudnn": "unknown: none",
		"torch": "2.11.0", "engine_build": strings.Repeat("ab", 32), "native.engine_build": "0", "hostname": "h", "recording": "1", "native.cublas": "1", "cublas": "1"}
	k := certificate.KeyOf(environment, strings.Repeat("cd", 32))
	if got, want := k.Text(), "gpu NVIDIA H200, driver 581, cuda 13.1, cublas 1, torch 2.11.0, engine_build abababababababab, recording cdcdcdcdcdcdcdcd"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := strings.Join(k.Missing(), " "); got != "gpu.arch gpu.sms cudnn cublaslt nvrtc torch_revision" {
		t.Errorf("missing: %s", got)
	}
	if rest := k.WithoutRecording(); len(rest) != len(k)-1 || rest["recording"] != "" || k["recording"] == "" {
		t.Errorf("%v of %v", rest, k)
	}
	environment["native.torch"] = "2.12.0"
	if got := certificate.Apart(environment); !slices.Equal(got, []string{"driver", "engine_build", "torch"}) {
		t.Errorf("apart: %q", got)
	}
	for value, want := range map[string]string{strings.Repeat("ab", 32): strings.Repeat("ab", 8), strings.Repeat("xy", 32): strings.Repeat("xy", 32), "abc": "abc"} {
		if got := certificate.Short(value); got != want {
			t.Errorf("%s became %s", value, got)
		}
	}
}

// The list of goldens is a line for each digest, in the order of what they are of.
func TestGoldensList(t *testing.T) {
	got := certificate.Goldens(certificate.Digests{
		Outputs: map[string]map[string]map[string]string{"native-graph": {"zeros": {"b": "03", "a": "02"}, "noise": {"a": "01"}}, "native-eager": {"noise": {"a": "00"}}},
		Steps:   map[string][]string{"native-graph": {"04", "05"}},
	})
	want := "00  native-eager/noise/a\n01  native-graph/noise/a\n04  native-graph/step 000001\n05  native-graph/step 000002\n02  native-graph/zeros/a\n03  native-graph/zeros/b\n"
	if string(got) != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// Each signature of several must be somebody's who is trusted, and nobody signs twice.
func TestSeveralSigners(t *testing.T) {
	s := granted(t, gate.Predict)
	other := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{8}, ed25519.SeedSize))
	files := map[string][]byte{}
	var e, second certificate.Envelope
	for _, f := range []struct {
		key ed25519.PrivateKey
		to  *certificate.Envelope
	}{{key, &e}, {other, &second}} {
		data, err := s.Sign(f.key)
		if err == nil {
			err = json.Unmarshal(data, f.to)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, signatures := range map[string][]certificate.Signature{"both": {e.Signatures[0], second.Signatures[0]}, "twice": {e.Signatures[0], e.Signatures[0]}} {
		all := e
		all.Signatures = signatures
		data, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = append(data, '\n')
	}
	bob := certificate.Trusted{Name: "bob", Public: certificate.Public(other), NotAfter: made.Add(1000 * time.Hour)}
	for _, c := range []struct {
		name, file, want string
		trust            certificate.Trust
	}{
		{"both are trusted", "both", "", append(trust(), bob)},
		{"one is trusted", "both", certificate.UnknownKey, trust()},
		{"the other one is trusted", "both", certificate.UnknownKey, certificate.Trust{bob}},
		{"one signed twice", "twice", certificate.Contradictory, trust()},
	} {
		q := question(s)
		q.Trust = c.trust
		got, err := certificate.Check(files[c.file], q)
		if strings.Join(reasons(t, err), " ") != c.want || (got != nil) != (c.want == "") || got != nil && len(got.Signers) != 2 {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// Not even a trusted key makes a certificate of what no verification can have said.
func TestSignedNonsense(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*certificate.Statement)
		want  string
	}{
		"a gate that failed": {func(s *certificate.Statement) {
			s.Predicate.Gates[gate.Replay] = gate.Finding{Outcome: gate.Failed, Reason: "X"}
		}, certificate.AgainstSchema},
		"a gate that was skipped": {func(s *certificate.Statement) { s.Predicate.Gates[gate.Native] = gate.Skip(gate.NotReached, "") }, certificate.AgainstSchema},
		"a gate that is missing":  {func(s *certificate.Statement) { delete(s.Predicate.Gates, gate.NotStale) }, certificate.AgainstSchema},
		"three arms":              {func(s *certificate.Statement) { s.Predicate.Arms = s.Predicate.Arms[:3] }, certificate.AgainstSchema},
		"other bits": {func(s *certificate.Statement) {
			s.Predicate.Digests.Outputs["native-graph"]["noise"]["logits"] = strings.Repeat("0", 64)
		}, certificate.Contradictory},
		"another engine":       {func(s *certificate.Statement) { s.Predicate.Key["engine_build"] = strings.Repeat("0", 64) }, certificate.Contradictory},
		"another driver":       {func(s *certificate.Statement) { s.Predicate.Key["driver"] = "1" }, certificate.Contradictory},
		"no driver":            {func(s *certificate.Statement) { delete(s.Predicate.Key, "driver") }, certificate.AgainstSchema},
		"another recording":    {func(s *certificate.Statement) { s.Subject[0].Digest["blake3"] = strings.Repeat("0", 64) }, certificate.Contradictory},
		"other goldens":        {func(s *certificate.Statement) { s.Subject[2].Digest["sha256"] = strings.Repeat("0", 64) }, certificate.Contradictory},
		"nothing was replayed": {func(s *certificate.Statement) { s.Predicate.Replays["native-graph"] = certificate.Replays{} }, certificate.AgainstSchema},
		"expired when made":    {func(s *certificate.Statement) { s.Predicate.Expires = made.Add(-time.Hour) }, certificate.Contradictory},
		"another type":         {func(s *certificate.Statement) { s.PredicateType = "https://slsa.dev/provenance/v1" }, certificate.OtherType},
		"another mode":         {func(s *certificate.Statement) { s.Predicate.Cell.Mode = gate.Train }, certificate.AgainstSchema},
	} {
		t.Run(name, func(t *testing.T) {
			s := granted(t, gate.Predict)
			q := question(s)
			c.spoil(&s)
			_, err := certificate.Check(signed(t, s), q)
			if got := reasons(t, err); !slices.Contains(got, c.want) {
				t.Errorf("%v: %v", got, err)
			}
		})
	}
}

func TestGrantRefuses(t *testing.T) {
	good, evidence := verified(t, gate.Predict, "cuda:0", suitetest.Faults{})
	for name, c := range map[string]struct {
		change func(*result.Result, *grant.Evidence)
		want   string
	}{
		"another engine's file": {func(_ *result.Result, e *grant.Evidence) { e.Engine = []byte("another") }, grant.OtherFile},
		"another recording":     {func(_ *result.Result, e *grant.Evidence) { e.Recording = nil }, grant.OtherFile},
		"no driver":             {func(r *result.Result, _ *grant.Evidence) { delete(r.Environment, "driver") }, grant.Incomplete},
		"two cuDNNs":            {func(r *result.Result, _ *grant.Evidence) { r.Environment["native.cudnn"] = "9.14" }, grant.SidesDiffer},
		"an edited verdict": {func(r *result.Result, _ *grant.Evidence) {
			r.Gates[gate.Replay] = gate.Finding{Outcome: gate.Failed}
		}, certificate.GateNotPassed},
	} {
		r, e := good, evidence
		r.Environment, r.Gates = maps.Clone(good.Environment), maps.Clone(good.Gates)
		c.change(&r, &e)
		_, err := grant.Grant(r, e, made, certificate.Lifetime)
		if got := reasons(t, err); !slices.Contains(got, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for lifetime, want := range map[time.Duration]string{-time.Hour: grant.BadLifetime, 0: grant.BadLifetime, time.Second: "",
		10 * certificate.Lifetime: "", 10*certificate.Lifetime + 1: grant.BadLifetime} {
		_, err := grant.Grant(good, evidence, made, lifetime)
		if got := strings.Join(reasons(t, err), " "); got != want {
			t.Errorf("good for %v: %v", lifetime, err)
		}
	}
	for name, c := range map[string]struct {
		device string
		faults suitetest.Faults
		want   string
	}{
		"on the host": {suite.HostDevice, suitetest.Faults{}, grant.NotOnGPU},
		"differs":     {"cuda:0", suitetest.Faults{Native: suitetest.ULPs(1)}, grant.NotExact},
		"stale":       {"cuda:0", suitetest.Faults{Stale: true}, grant.NotExact},
		"noise":       {"cuda:0", suitetest.Faults{Noise: true}, grant.NotExact},
	} {
		r, e := verified(t, gate.Predict, c.device, c.faults)
		_, err := grant.Grant(r, e, made, certificate.Lifetime)
		said := r.Reason == "" || err != nil && strings.Contains(err.Error(), fmt.Sprintf("is %s (%s): ", r.Verdict, r.Reason))
		if got := reasons(t, err); !slices.Contains(got, c.want) || !slices.Contains(got, grant.NotExact) || !said {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Flags come from certificates alone: nothing that a plugin or a file says of itself makes one true.
func TestFlags(t *testing.T) {
	s := granted(t, gate.Predict)
	file := signed(t, s)
	cell := s.Predicate.Cell
	forged, err := s.Sign(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{9}, ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	r, _ := verified(t, gate.Predict, "cuda:0", suitetest.Faults{Stale: true}, recording.Setting{Key: "SUPPORTS_CUDA_GRAPH", Value: "true"})
	if r.Verdict == result.Exact || r.Environment["SUPPORTS_CUDA_GRAPH"] != "true" {
		t.Fatalf("%s %v", r.Verdict, r.Environment)
	}
	edited := r
	edited.Verdict = result.Exact
	text, err := json.Marshal(edited)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		data   []byte
		change func(*certificate.Question)
		want   string
	}{
		{"a certificate", file, nil, ""},
		{"an unknown key's", forged, nil, certificate.None},
		{"cut short", file[:100], nil, certificate.None},
		{"an edited result", append(text, '\n'), nil, certificate.None},
		{"of another driver", file, func(q *certificate.Question) { q.Here.Key["driver"] = "1" }, certificate.OtherDriver},
		{"expired trust", file, func(q *certificate.Question) { q.Trust[0].NotAfter = made }, certificate.TrustExpired},
	} {
		q := question(s)
		if c.change != nil {
			c.change(&q)
		}
		flags, _ := grant.Flags([]certificate.File{{Path: "x" + certificate.Extension, Data: c.data}}, []certificate.Cell{cell}, q)
		if len(flags) != 1 || flags[0].Supports != (c.want == "") || flags[0].Reason != c.want {
			t.Errorf("%s: %+v", c.name, flags)
		}
	}
	var page bytes.Buffer
	if err := grant.FlagsPage(&page, []certificate.File{{Data: forged}, {Data: file}}, trust()); err != nil {
		t.Fatal(err)
	}
	if got := page.String(); strings.Count(got, "| classify | fake |") != 1 || !strings.Contains(got, "driver 580.159.04") {
		t.Errorf("%s", got)
	}
}

// goldens/FLAGS.md is what goldens/certificates say, and the keys in it are public ones.
func TestFlagsPage(t *testing.T) {
	const path = "../../goldens/FLAGS.md"
	keys, err := certificate.ParseTrust(goldens.CertificateKeys, "goldens/certificates/keys")
	if err != nil {
		t.Fatal(err)
	}
	files, err := certificate.ReadFolder("../../goldens/certificates")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		c, err := certificate.CheckWhenMade(f.Data, keys)
		if err != nil {
			t.Errorf("%s: %v", f.Path, err)
		} else if !strings.HasSuffix(filepath.ToSlash(f.Path), c.Predicate.File()) {
			t.Errorf("%s: by what it says its name is %s", f.Path, c.Predicate.File())
		}
	}
	var page bytes.Buffer
	if err := grant.FlagsPage(&page, files, keys); err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		if err := os.WriteFile(path, page.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(path); err != nil || !bytes.Equal(have, page.Bytes()) {
		t.Errorf("%s is not what the certificates say (go test ./parity/certificate -rewrite writes it anew): %v", path, err)
	}
}

// The user's keys lie where the variable says, or else with all else that is configured.
func TestUserKeyring(t *testing.T) {
	folder := t.TempDir()
	for _, c := range []struct{ name, variable, config, want string }{
		{"the variable", "keys", folder, "keys"},
		{"the user's configuration", "", folder, filepath.Join(folder, "samebits", "keys")},
		{"neither", "", "", ""},
	} {
		t.Setenv(certificate.FolderVariable, c.variable)
		t.Setenv("XDG_CONFIG_HOME", c.config)
		t.Setenv("HOME", "")
		ring, err := certificate.UserKeyring()
		if ring.Folder != c.want || (c.want == "") != slices.Contains(reasons(t, err), certificate.KeyMissing) {
			t.Errorf("%s: %q, %v", c.name, ring.Folder, err)
		}
	}
}

// Certificates are kept at a path of their own below a folder, and found there again. What cannot be read hides no other one.
func TestFolder(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "certificates")
	if files, err := certificate.ReadFolder(folder); err != nil || len(files) != 0 {
		t.Errorf("of no folder: %d, %v", len(files), err)
	}
	p := certificate.Predicate{Cell: certificate.Cell{Family: "resnet", Size: "18", Task: "classify", ImgSize: 96, Batch: 2, Mode: "predict", Precision: "bf16"}, Profile: "exact-1"}
	for _, c := range []struct {
		change func(*certificate.Predicate)
		want   string
	}{
		{func(*certificate.Predicate) {}, "classify/resnet-18-96-b2-predict-bf16.dsse.json"},
		{func(p *certificate.Predicate) { p.Probes = []certificate.Probe{{Name: "noise", Seed: 0}} }, "classify/resnet-18-96-b2-predict-bf16.dsse.json"},
		{func(p *certificate.Predicate) {
			p.Probes = []certificate.Probe{{Name: "noise", Seed: 7}, {Name: "zeros", Seed: 8}}
		}, "classify/resnet-18-96-b2-predict-bf16-s7.dsse.json"},
		{func(p *certificate.Predicate) { p.Profile = "exact-2" }, "classify/resnet-18-96-b2-predict-bf16-exact-2.dsse.json"},
		{func(p *certificate.Predicate) { p.Cell.Task, p.Cell.Family = "../..", `../a\b` }, "___/__a_b-18-96-b2-predict-bf16.dsse.json"},
	} {
		p := p
		c.change(&p)
		path, err := p.Keep(folder, []byte(c.want))
		if err != nil || path != filepath.Join(folder, filepath.FromSlash(c.want)) {
			t.Errorf("%s, %v instead of %s", path, err, c.want)
		}
	}
	long := filepath.Join(folder, "long"+certificate.Extension)
	for _, err := range []error{
		os.WriteFile(filepath.Join(folder, "README.md"), nil, 0o600), os.WriteFile(filepath.Join(folder, ".hidden"+certificate.Extension), nil, 0o600),
		os.WriteFile(long, nil, 0o600), os.Truncate(long, certificate.Limit+1),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	files, err := certificate.ReadFolder(folder)
	var found []string
	for _, f := range files {
		if below, err := filepath.Rel(folder, f.Path); err != nil || below != string(f.Data) {
			t.Errorf("%s has %q, %v", f.Path, f.Data, err)
		}
		found = append(found, string(f.Data))
	}
	if len(found) != 4 || !slices.IsSorted(found) || err == nil || !strings.Contains(err.Error(), long) {
		t.Errorf("%q, %v", found, err)
	}
	if err := os.Remove(long); err != nil {
		t.Fatal(err)
	}
	if files, err := certificate.ReadFolder(folder); err != nil || len(files) != 4 {
		t.Errorf("%d, %v", len(files), err)
	}
	if _, err := p.Keep(filepath.Join(folder, "README.md"), nil); err == nil {
		t.Error("kept below a file")
	}
	if _, err := certificate.ReadFile(filepath.Join(folder, "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("of no file: %v", err)
	}
}

// What was built in is what lies in goldens.
func TestPackaged(t *testing.T) {
	packaged, err := certificate.Packaged()
	if err != nil {
		t.Fatal(err)
	}
	kept, err := certificate.ReadFolder("../../goldens/certificates")
	if err != nil {
		t.Fatal(err)
	}
	if len(packaged) == 0 || len(packaged) != len(kept) {
		t.Errorf("%d were built in, %d are kept", len(packaged), len(kept))
	}
	for i := range min(len(packaged), len(kept)) {
		if filepath.ToSlash(kept[i].Path) != "../../"+packaged[i].Path || !bytes.Equal(kept[i].Data, packaged[i].Data) {
			t.Errorf("%s is not %s", packaged[i].Path, kept[i].Path)
		}
	}
}

// What is too long to be a certificate is not read.
func TestLongFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "long"+certificate.Extension)
	for size, want := range map[int64]string{certificate.Limit: "", certificate.Limit + 1: certificate.Unreadable} {
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, size)); err != nil {
			t.Fatal(err)
		}
		file, err := certificate.ReadFile(path)
		if got := strings.Join(reasons(t, err), " "); got != want || (want == "") != (int64(len(file.Data)) == size) {
			t.Errorf("%d bytes: %d were read, %v", size, len(file.Data), err)
		}
	}
}

func TestKeyring(t *testing.T) {
	ring := certificate.Keyring{Folder: filepath.Join(t.TempDir(), "keys")}
	if _, err := ring.Private(""); !slices.Contains(reasons(t, err), certificate.KeyMissing) {
		t.Error(err)
	}
	public, err := ring.New("alice")
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(ring.Folder, "alice.pem")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if _, err := ring.New("alice"); !slices.Contains(reasons(t, err), certificate.KeyThere) {
		t.Error(err)
	}
	if _, err := ring.New("../alice"); !slices.Contains(reasons(t, err), certificate.KeyInvalid) {
		t.Error(err)
	}
	private, err := ring.Private("")
	if err != nil || !certificate.Public(private).Equal(public) {
		t.Fatal(err)
	}
	if err := ring.Add(certificate.Trusted{Name: "alice", Public: public, NotAfter: made}); err != nil {
		t.Fatal(err)
	}
	if all, err := ring.Trust(); err != nil || len(all) != 1 || !all[0].NotAfter.Equal(made) {
		t.Errorf("%v %v", all, err)
	}
	if err := ring.Remove("bob"); !slices.Contains(reasons(t, err), certificate.KeyMissing) {
		t.Error(err)
	}
	if err := ring.Remove(certificate.KeyID(public)); err != nil {
		t.Error(err)
	}
	if all, err := ring.Trust(); err != nil || len(all) != 0 {
		t.Errorf("%v %v", all, err)
	}
	if err := os.Chmod(filepath.Join(ring.Folder, "alice.pem"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ring.Private("alice"); !slices.Contains(reasons(t, err), certificate.KeyExposed) {
		t.Error(err)
	}
}

// Keys are named, or given by their files; what is no ed25519 key is refused.
func TestPrivateKeys(t *testing.T) {
	ring := certificate.Keyring{Folder: t.TempDir()}
	for _, name := range []string{"alice", "bob"} {
		if _, err := ring.New(name); err != nil {
			t.Fatal(err)
		}
	}
	if names := ring.Names(); !slices.Equal(names, []string{"alice", "bob"}) {
		t.Errorf("%q", names)
	}
	otherKey, otherPublic := another(t)
	at := func(name string) string { return filepath.Join(ring.Folder, name) }
	for name, text := range map[string]string{"text.pem": "no key", "other.pem": otherKey, "torn.pem": "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"} {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ name, want string }{
		{"alice", ""}, {at("alice.pem"), ""}, {"", certificate.KeyMissing}, {"carol", certificate.KeyMissing}, {at("carol.pem"), certificate.KeyMissing},
		{"text", certificate.KeyInvalid}, {"other", certificate.KeyInvalid}, {"torn", certificate.KeyInvalid},
	} {
		private, err := ring.Private(c.name)
		if got := strings.Join(reasons(t, err), " "); got != c.want || (c.want == "") != (private != nil) {
			t.Errorf("%q: %v", c.name, err)
		}
	}
	elsewhere := t.TempDir()
	for _, name := range []string{"key", "carol.pem"} {
		if err := os.Link(at("bob.pem"), filepath.Join(elsewhere, name)); err != nil {
			t.Fatal(err)
		}
	}
	bob, err := ring.Private("bob")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(elsewhere)
	for _, name := range []string{filepath.Join(elsewhere, "key"), "./key", "carol.pem"} {
		if key, err := ring.Private(name); err != nil || !key.Equal(bob) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if key, err := ring.Private(at("alice.pem/key.pem")); key != nil || err == nil {
		t.Errorf("of a file below a file: %v", err)
	}
	public, err := os.ReadFile(at("alice.pub"))
	if err != nil {
		t.Fatal(err)
	}
	private, err := ring.Private("alice")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := certificate.ParsePublic(public, ""); err != nil || !got.Equal(certificate.Public(private)) {
		t.Errorf("%v, %v", got, err)
	}
	for name, text := range map[string]string{"a private key": otherKey, "another algorithm": otherPublic, "text": "no key",
		"torn": "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"} {
		if key, err := certificate.ParsePublic([]byte(text), "x"); key != nil || strings.Join(reasons(t, err), " ") != certificate.KeyInvalid {
			t.Errorf("%s: %v, %v", name, key, err)
		}
	}
}

// another is a pair of keys of another algorithm, as files have them.
func another(t *testing.T) (private, public string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text := func(kind string, der []byte, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	private = text("PRIVATE KEY", der, err)
	der, err = x509.MarshalPKIXPublicKey(key.Public())
	return private, text("PUBLIC KEY", der, err)
}

// One name stands for one key, and one key for one name. A list that cannot be read is not written anew.
func TestTrustedList(t *testing.T) {
	ring := certificate.Keyring{Folder: filepath.Join(t.TempDir(), "keys")}
	alice, bob := certificate.Public(key), certificate.Public(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{8}, ed25519.SeedSize)))
	add := func(name string, public ed25519.PublicKey, hours time.Duration) {
		t.Helper()
		if err := ring.Add(certificate.Trusted{Name: name, Public: public, NotAfter: made.Add(hours * time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	list := func() string {
		t.Helper()
		all, err := ring.Trust()
		if err != nil {
			t.Fatal(err)
		}
		var words []string
		for _, k := range all {
			who := map[bool]string{true: "alice's", false: "bob's"}[k.Public.Equal(alice)]
			words = append(words, fmt.Sprint(k.Name, " ", who, " ", k.NotAfter.Sub(made)))
		}
		return strings.Join(words, ", ")
	}
	add("a", alice, 1)
	add("b", bob, 2)
	add("a", alice, 3)
	if got := list(); got != "b bob's 2h0m0s, a alice's 3h0m0s" {
		t.Error(got)
	}
	add("b", alice, 4) // takes the name of one and the key of the other
	if got := list(); got != "b alice's 4h0m0s" {
		t.Error(got)
	}
	add("a", bob, 5)
	if err := ring.Remove("b"); err != nil || list() != "a bob's 5h0m0s" {
		t.Errorf("%v, %s", err, list())
	}
	if err := ring.Add(certificate.Trusted{Name: "../a", Public: alice, NotAfter: made}); !slices.Contains(reasons(t, err), certificate.KeyInvalid) {
		t.Errorf("%v", err)
	}
	if info, err := os.Stat(ring.Folder); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	below := certificate.Keyring{Folder: filepath.Join(ring.Folder, "trusted.json", "keys")}
	if public, err := below.New("a"); public != nil || err == nil {
		t.Errorf("a key below a file: %v", err)
	}
	if err := below.Add(certificate.Trusted{Name: "a", Public: alice, NotAfter: made}); err == nil {
		t.Error("a list below a file")
	}
	nowhere := certificate.Keyring{Folder: filepath.Join(t.TempDir(), "link")}
	if err := os.Symlink("missing", nowhere.Folder); err != nil {
		t.Fatal(err)
	}
	if err := nowhere.Add(certificate.Trusted{Name: "a", Public: alice, NotAfter: made}); err == nil {
		t.Error("a list in a folder that cannot be made")
	}
	file := filepath.Join(ring.Folder, "trusted.json")
	const torn = `{"schema":1,"keys":[`
	if err := os.WriteFile(file, []byte(torn), 0o600); err != nil {
		t.Fatal(err)
	}
	_, read := ring.Trust()
	for name, err := range map[string]error{"Trust": read, "Remove": ring.Remove("a"), "Add": ring.Add(certificate.Trusted{Name: "a", Public: alice, NotAfter: made})} {
		if !slices.Contains(reasons(t, err), certificate.TrustInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != torn {
		t.Errorf("%s, %v", data, err)
	}
}
