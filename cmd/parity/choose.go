package main

import (
	"context"
	"path/filepath"
	"slices"

	"samebits/parity/launch"
	"samebits/parity/matrix"
	"samebits/parity/suite"
)

// check finds what is wrong with the flags alone.
func (f *verifyFlags) check(families []string) error {
	patterns := slices.ContainsFunc(families, matrix.IsPattern)
	switch {
	case len(families) == 0 && !f.all:
		return usagef("requires at least 1 arg(s), a family or a pattern of families, or --all; see parity verify --help")
	case len(families) > 0 && f.all:
		return usagef("--all stands for all families; name some of them, or take --all")
	case f.size != "" && (f.all || patterns):
		return usagef("--size is of a family; name it")
	case f.resume && f.output == "":
		return usagef("--resume needs --output, where the finished cells are")
	case f.jobs < 0 || f.jobs == 0 && f.given("jobs"):
		return usagef("--jobs is a positive number")
	}
	for _, path := range f.matrix {
		if matrixFormats[filepath.Ext(path)] == nil {
			return usagef("--matrix %s: the table is written as .md, .json or .txt", path)
		}
	}
	_, err := f.expand([]suite.Cell{{}})
	return err
}

// choose gives the cells that the flags describe. What can be told without the reference plugin's table needs none.
func (f *verifyFlags) choose(ctx context.Context, b backend, families []string) ([]suite.Cell, error) {
	if !f.all && !f.resume && f.imgsz.word != "list" && !slices.ContainsFunc(families, matrix.IsPattern) {
		return f.cells(families)
	}
	table, err := b.Families(ctx)
	if err != nil {
		return nil, err
	}
	var named []suite.Cell
	for _, families := range eachOrNone(families) {
		chosen, err := matrix.Selection{Families: families, Tasks: f.tasks, Groups: f.groups}.Choose(table)
		if err != nil {
			return nil, usagef("%w", err)
		}
		listed := f.all || matrix.IsPattern(families[0])
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
func (f *verifyFlags) cellOf(e launch.Entry, listed bool) suite.Cell {
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
