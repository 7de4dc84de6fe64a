package predict

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"samebits/bridge/arm"
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/parity/suite"
)

// sizer is both sides of a family whose images are as long as the text of their picture. A step adds all elements up.
type sizer struct {
	suite.Arm // of what no prediction calls

	mu       sync.Mutex
	memory   []byte
	texts    map[string]string // by number
	record   []byte
	inputs   []arm.Bank
	outputs  []arm.Bank
	lengths  []int64 // of the recordings that are loaded
	loads    int
	prepares int
	fails    int64 // length of images that Load refuses
	torn     error // of every Export
	drops    int
	says     string // in the place of what finish says
}

func (s *sizer) Reference(context.Context) (suite.Arm, error) { return s, nil }

func (s *sizer) Native(context.Context, []recording.Setting) (suite.Arm, error) { return s, nil }

func (s *sizer) NativeTrainer(context.Context, []recording.Setting) (suite.Arm, error) {
	panic("nobody trains")
}

func (s *sizer) Stop() {}

func (s *sizer) Describe(context.Context) (arm.Description, error) { return arm.Description{}, nil }

func (s *sizer) Build(context.Context, arm.BuildRequest) (arm.BuildReply, error) {
	return arm.BuildReply{Task: "restore", Size: "s", ImgSize: 8}, nil
}

func (s *sizer) Alloc(_ context.Context, n int64) (arm.Region, []byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.memory == nil {
		s.memory = make([]byte, 0, 1<<20) // never moves
	}
	at := (len(s.memory) + 63) / 64 * 64
	s.memory = s.memory[:at+int(n)]
	return arm.Region{Offset: int64(at), Length: n}, s.memory[at : at+int(n) : at+int(n)], nil
}

func (s *sizer) at(r arm.Region) []byte { return s.memory[r.Offset : r.Offset+r.Length] }

func (s *sizer) Process(_ context.Context, r arm.ProcessRequest) (arm.ProcessReply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	get := func(key string) string {
		return r.Settings[slices.IndexFunc(r.Settings, func(s recording.Setting) bool { return s.Key == key })].Value
	}
	number := get("number")
	switch r.Stage {
	case "begin":
		text, err := os.ReadFile(get("source"))
		s.texts[number] = string(text)
		return arm.ProcessReply{Tensors: []tensor.Spec{{Name: "images", DType: tensor.Uint8, Sizes: []int64{int64(len(text))}}}, Text: "{}"}, err
	case "give":
		copy(s.at(r.Bank[0].Region), s.texts[number])
		return arm.ProcessReply{Tensors: []tensor.Spec{{Name: "output", DType: tensor.Uint8, Sizes: []int64{2}}}, Text: "{}"}, nil
	case "drop":
		s.drops++
	case "finish":
		if s.says != "" {
			return arm.ProcessReply{Text: s.says}, nil
		}
		made := s.at(r.Bank[0].Region)
		return arm.ProcessReply{Text: fmt.Sprintf(`{"results": [{"width": 1, "height": 1, "answer": {"sum": %d}}]}`, int(made[0])+256*int(made[1]))}, nil
	}
	return arm.ProcessReply{Text: "{}"}, nil
}

func (s *sizer) Record(_ context.Context, inputs arm.Bank) (arm.RecordReply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record = fmt.Append(nil, inputs[0].Sizes[0])
	return arm.RecordReply{RecordingLength: int64(len(s.record)), WeightsLength: 7}, nil
}

func (s *sizer) Export(_ context.Context, r arm.ExportRequest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.torn != nil {
		return s.torn
	}
	if r.What == arm.TheRecording {
		copy(s.at(r.Region), s.record)
	} else {
		copy(s.at(r.Region), "weights")
	}
	return nil
}

func (s *sizer) Load(_ context.Context, r arm.LoadRequest) (arm.LoadReply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loads++
	if len(r.Options) == 0 {
		s.lengths = nil
	}
	var length int64
	if err := json.Unmarshal(s.at(r.Recording), &length); err != nil || string(s.at(r.Weights)) != "weights" {
		return arm.LoadReply{}, fmt.Errorf("%q, %q: %w", s.at(r.Recording), s.at(r.Weights), err)
	}
	s.lengths = append(s.lengths, length)
	if length == s.fails {
		return arm.LoadReply{}, refusal("UNKNOWN_OPERATION")
	}
	return arm.LoadReply{}, nil
}

func (s *sizer) Prepare(_ context.Context, r arm.PrepareRequest) (arm.PrepareReply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prepares++
	s.inputs, s.outputs = r.Inputs, r.Outputs
	if len(s.inputs) != len(s.lengths) || len(s.inputs) > mostShapes {
		return arm.PrepareReply{}, fmt.Errorf("%d banks for %d recordings", len(s.inputs), len(s.lengths))
	}
	return arm.PrepareReply{}, nil
}

func (s *sizer) Step(_ context.Context, input, output int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	in := s.inputs[input][0]
	if s.lengths[input] != in.Sizes[0] {
		return fmt.Errorf("images of %d for a recording of %d", in.Sizes[0], s.lengths[input])
	}
	sum := 0
	for _, x := range s.at(in.Region) {
		sum += int(x)
	}
	out := s.at(s.outputs[output][0].Region)
	out[0], out[1] = byte(sum), byte(sum>>8)
	return nil
}

func sums(t *testing.T, s *sizer, texts []string) ([]int, []string) {
	t.Helper()
	s.texts = map[string]string{}
	p, err := Open(t.Context(), s, options(arm.NativeEager))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var all []int
	var reasons []string
	err = p.Run(t.Context(), files(t, texts...), func(o Outcome) error {
		var said struct{ Sum int }
		if o.Problem != nil {
			reasons = append(reasons, o.Problem.Reason)
		} else if err := json.Unmarshal(o.Line, &said); err != nil {
			return err
		}
		all = append(all, said.Sum)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all, reasons
}

func TestEachShapeIsRecordedOnceWhileItStays(t *testing.T) {
	var texts []string
	var want []int
	for i := range 60 {
		texts = append(texts, strings.Repeat("b", 100*(i%mostShapes+1)+i%3))
	}
	for i := range 20 { // more shapes than stay
		texts = append(texts, strings.Repeat("c", 2000+i))
	}
	for _, text := range texts {
		want = append(want, int(text[0])*len(text)%65536)
	}
	distinct := map[int]bool{}
	s := &sizer{}
	if got, reasons := sums(t, s, texts[:8]); !slices.Equal(got, want[:8]) || len(reasons) > 0 || s.loads != 8 || s.prepares != 8 {
		t.Errorf("%v: %v; %d loads, %d prepares", reasons, got, s.loads, s.prepares)
	}
	got, reasons := sums(t, s, texts)
	if !slices.Equal(got, want) || len(reasons) > 0 {
		t.Errorf("%v: %v\nwant %v", reasons, got, want)
	}
	for _, text := range texts {
		distinct[len(text)] = true
	}
	if len(s.lengths) > mostShapes || len(distinct) < 3*mostShapes {
		t.Errorf("%d of %d shapes are loaded", len(s.lengths), len(distinct))
	}
	if used := len(s.memory); used > 200_000 {
		t.Errorf("%d bytes were taken: places are not taken again", used)
	}
}

func TestAShapeThatIsRefusedTakesNoOtherAlong(t *testing.T) {
	texts := []string{"aaaa", "bb", "aaaa", "cccccc", "bb", "aaaa"}
	s := &sizer{fails: 2}
	got, reasons := sums(t, s, texts)
	if s.drops != 2 {
		t.Errorf("%d predictions were dropped that nobody finishes", s.drops)
	}
	if !slices.Equal(got, []int{4 * 'a', 0, 4 * 'a', 6 * 'c', 0, 4 * 'a'}) || !slices.Equal(reasons, []string{"UNKNOWN_OPERATION", "UNKNOWN_OPERATION"}) {
		t.Errorf("%v: %v", reasons, got)
	}
}

// What a plugin says is held against what it was asked.
func TestWhatAPluginSays(t *testing.T) {
	torn := errors.New("the memory is gone")
	for _, c := range []struct {
		name  string
		sizer *sizer
		want  string // the run ends with
	}{
		{"a picture that nobody gave", &sizer{says: `{"results": [{"source": 1, "answer": {"sum": 1}}]}`}, "speaks of picture 1 of 1"},
		{"a picture before the first", &sizer{says: `{"results": [{"source": -1, "answer": {"sum": 1}}]}`}, "speaks of picture -1 of 1"},
		{"a failure that nobody asked for", &sizer{says: `{"failed": [{"source": 7, "problem": {"reason": "X"}}]}`}, "speaks of picture 7 of 1"},
		{"no JSON", &sizer{says: "hello"}, "what the reference plugin says of stage finish"},
		{"an answer that is no object", &sizer{says: `{"results": [{"source": 0, "answer": [1]}]}`}, "gave no answer"},
		{"a recording that cannot be had", &sizer{torn: torn}, "export the recording: the memory is gone"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.sizer.texts = map[string]string{}
			p, err := Open(t.Context(), c.sizer, options(arm.NativeEager))
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			err = p.Run(t.Context(), files(t, "a", "b"), func(o Outcome) error {
				t.Errorf("%+v", o)
				return nil
			})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestSettings(t *testing.T) {
	conf, most := 0.25, int64(7)
	for _, c := range []struct {
		settings Settings
		want     string
	}{
		{Settings{}, "batch=2"},
		{Settings{Conf: &conf, IoU: &conf, MaxDet: &most, Classes: []int64{1, 5}, ImgSize: 320, Masks: "rle", Folder: "out", Annotate: true},
			"batch=2 conf=0.25 iou=0.25 max_det=7 classes=1,5 imgsz=320 masks=rle output=out annotate=true"},
	} {
		p := &Predictor{Cell: suite.Cell{Batch: 2}, options: Options{Settings: c.settings}}
		var got []string
		for _, s := range p.settings() {
			got = append(got, s.Key+"="+s.Value)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%q", got)
		}
	}
}
