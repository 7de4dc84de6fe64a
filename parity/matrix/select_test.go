package matrix_test

import (
	"slices"
	"strings"
	"testing"

	"samebits/parity/launch"
	"samebits/parity/matrix"
)

var table = []launch.Entry{
	{Task: "detect", Family: "yolo9", Size: "t", ImgSize: 640, Native: 640, Group: launch.Matrix},
	{Task: "detect", Family: "yolo9_p2", Size: "t", ImgSize: 640, Native: 640, Group: launch.Matrix},
	{Task: "detect", Family: "dfine", Size: "n", ImgSize: 640, Native: 640, Group: launch.Matrix},
	{Task: "segment", Family: "dfine", Size: "n", ImgSize: 640, Native: 640, Group: launch.Matrix},
	{Task: "classify", Family: "resnet", Size: "18", ImgSize: 640, Native: 224, Group: launch.Matrix},
	{Task: "detect", Family: "domedetr", Size: "s", ImgSize: 800, Native: 800, Group: "beyond"},
}

func TestChoose(t *testing.T) {
	matrixOnly := []string{launch.Matrix}
	for _, c := range []struct {
		name      string
		selection matrix.Selection
		want      string
	}{
		{"all", matrix.Selection{Groups: matrixOnly}, "detect/yolo9 detect/yolo9_p2 detect/dfine segment/dfine classify/resnet"},
		{"all of two tasks", matrix.Selection{Groups: matrixOnly, Tasks: []string{"classify", "segment"}}, "segment/dfine classify/resnet"},
		{"another group", matrix.Selection{Groups: []string{"beyond"}}, "detect/domedetr"},
		{"a pattern", matrix.Selection{Groups: matrixOnly, Families: []string{"yolo*"}}, "detect/yolo9 detect/yolo9_p2"},
		{"a pattern of all tasks", matrix.Selection{Groups: matrixOnly, Families: []string{"d*"}}, "detect/dfine segment/dfine"},
		{"a pattern with a task", matrix.Selection{Groups: matrixOnly, Families: []string{"segment/*", "*/resnet"}}, "segment/dfine classify/resnet"},
		{"a pattern, of a task", matrix.Selection{Groups: matrixOnly, Families: []string{"d*"}, Tasks: []string{"segment"}}, "segment/dfine"},
		{"names", matrix.Selection{Groups: matrixOnly, Families: []string{"resnet", "dfine"}}, "classify/resnet detect/dfine"},
		{"a name of a task", matrix.Selection{Families: []string{"dfine"}, Tasks: []string{"segment"}}, "segment/dfine"},
		{"a name of two tasks", matrix.Selection{Families: []string{"dfine"}, Tasks: []string{"segment", "detect"}}, "segment/dfine detect/dfine"},
		{"a name of any group", matrix.Selection{Groups: matrixOnly, Families: []string{"domedetr"}}, "detect/domedetr"},
		{"no cell comes twice", matrix.Selection{Groups: matrixOnly, Families: []string{"yolo9", "yolo9*"}}, "detect/yolo9 detect/yolo9_p2"},
		{"a name that nobody knows", matrix.Selection{Families: []string{"yolo99"}}, "/yolo99"},
		{"a task that the family lacks", matrix.Selection{Families: []string{"resnet"}, Tasks: []string{"pose"}}, "pose/resnet"},
	} {
		t.Run(c.name, func(t *testing.T) {
			found, err := c.selection.Choose(table)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, e := range found {
				names = append(names, e.Task+"/"+e.Family)
			}
			if got := strings.Join(names, " "); got != c.want {
				t.Errorf("%s instead of %s", got, c.want)
			}
		})
	}
}

func TestChooseNothing(t *testing.T) {
	for _, c := range []struct {
		selection matrix.Selection
		says      string
	}{
		{matrix.Selection{Families: []string{"yoloz*"}}, `no cell matches "yoloz*"; see parity list`},
		{matrix.Selection{Families: []string{"dome*"}, Groups: []string{"matrix"}}, `no cell matches "dome*" in group matrix; there are some with --group beyond`},
		{matrix.Selection{Groups: []string{"mine"}}, "no cell in group mine; there are some with --group matrix,beyond"},
		{matrix.Selection{Groups: []string{"mine"}, Tasks: []string{"classify"}}, "no cell of task classify in group mine; there are some with --group matrix"},
		{matrix.Selection{Families: []string{"[a"}}, `"[a" is no pattern`},
		{matrix.Selection{Tasks: []string{"gaze"}, Groups: []string{"matrix"}}, "no cell of task gaze in group matrix; see parity list"},
	} {
		found, err := c.selection.Choose(table)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, %v", found, err)
		}
	}
	if !slices.ContainsFunc([]string{"a*", "task/x", "x?"}, matrix.IsPattern) || matrix.IsPattern("yolo9_e2e") || matrix.IsPattern("birefnet@whole") {
		t.Error("patterns are not told from names")
	}
}
