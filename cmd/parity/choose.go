package main

import (
	"context"
	"errors"
	"path/filepath"
	"slices"

	"samebits/parity/launch"
	"samebits/parity/matrix"
	"samebits/parity/suite"
)

// selection says which cells of the parity list are wanted.
type selection struct {
	all    bool
	groups []string
}

// checkSelection finds what is wrong with the flags that choose cells.
func (f *cellFlags) checkSelection(command string, families []string, s selection) error {
	patterns := slices.ContainsFunc(families, matrix.IsPattern)
	switch {
	case len(families) == 0 && !s.all:
		return usagef("requires at least 1 arg(s), a family or a pattern of families, or --all; see parity %s --help", command)
	case len(families) > 0 && s.all:
		return usagef("--all stands for all families; name some of them, or take --all")
	case slices.Contains(families, ""):
		return usagef("a family's name is empty; see parity list")
	case f.size != "" && (s.all || patterns):
		return usagef("--size is of a family; name it")
	}
	_, err := f.expand([]suite.Cell{{}})
	return err
}

// check finds what is wrong with the flags alone.
func (f *verifyFlags) check(families []string) error {
	if err := f.checkSelection("verify", families, selection{f.all, f.groups}); err != nil {
		return err
	}
	switch {
	case f.resume && f.output == "":
		return usagef("--resume needs --output, where the finished cells are")
	case len(f.gates) > 0 && f.resume:
		return usagef("--gate and --resume: results of some gates alone stand for no cell")
	}
	if err := checkBounds(bounded{"jobs", f.jobs, 1, mostJobs, f.given("jobs")}); err != nil {
		return err
	}
	if err := errors.Join(f.checkGates(), f.checkRepeat()); err != nil {
		return err
	}
	for _, path := range f.matrix {
		if matrixFormats[filepath.Ext(path)] == nil {
			return usagef("--matrix %s: the table is written as .md, .json or .txt", path)
		}
	}
	return nil
}

// choose gives the cells that the flags describe.
func (f *verifyFlags) choose(ctx context.Context, b backend, families []string) ([]suite.Cell, error) {
	return f.chooseFrom(ctx, b, families, selection{f.all, f.groups}, f.resume || f.exactly)
}

// chooseFrom gives the cells that the flags describe. What can be told without the reference plugin's table needs none, unless
// it is asked for.
func (f *cellFlags) chooseFrom(ctx context.Context, b backend, families []string, s selection, asked bool) ([]suite.Cell, error) {
	if !s.all && !asked && f.imgsz.word != "list" && !slices.ContainsFunc(families, matrix.IsPattern) {
		return f.cells(families)
	}
	table, err := b.Families(ctx)
	if err != nil {
		return nil, err
	}
	var named []suite.Cell
	for _, families := range eachOrNone(families) {
		chosen, err := matrix.Selection{Families: families, Tasks: f.tasks, Groups: s.groups}.Choose(table)
		if err != nil {
			return nil, usagef("%w", err)
		}
		listed := s.all || matrix.IsPattern(families[0])
		for _, e := range chosen {
			if c := f.cellOf(e, listed); !slices.Contains(named, c) {
				named = append(named, c)
			}
		}
	}
	return f.expand(named)
}

// eachOrNone gives one list for each family, or an empty one where there is none.
func eachOrNone(families []string) [][]string {
	if len(families) == 0 {
		return [][]string{nil}
	}
	var lists [][]string
	for _, family := range families {
		lists = append(lists, []string{family})
	}
	return lists
}

// cellOf fills in what a line of the table says. The family's own image size is known of the size that the table has.
func (f *cellFlags) cellOf(e launch.Entry, listed bool) suite.Cell {
	c := suite.Cell{Family: e.Family, Task: e.Task, Size: e.Size, ImgSize: f.imgsz.pixels}
	if f.size != "" {
		c.Size = f.size
	}
	switch {
	case c.ImgSize != 0:
	case f.imgsz.word == "list", listed && f.imgsz.word == "":
		c.ImgSize = e.ImgSize
	case c.Size == e.Size:
		c.ImgSize = e.Native
	}
	return c
}

// namedDevice is what the native engine says of a device.
func namedDevice(ctx context.Context, b backend, name string) (launch.Device, error) {
	devices, err := b.Devices(ctx)
	if err != nil {
		return launch.Device{}, err
	}
	for _, d := range devices {
		if d.Name == name {
			return d, nil
		}
	}
	return launch.Device{Name: name}, nil // whether it is there is the plugins' to say
}
