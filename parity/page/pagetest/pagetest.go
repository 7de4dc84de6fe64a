// Package pagetest holds what every page must obey: it is offline, can be read by who does not see it, and draws nothing
// outside its plots.
package pagetest

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// Parse reads a page.
func Parse(t *testing.T, source string) *html.Node {
	t.Helper()
	root, err := html.Parse(strings.NewReader(source))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// Attribute gives the value of an attribute.
func Attribute(n *html.Node, key string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val, true
		}
	}
	return "", false
}

// Elements lists those with one of the names; no name: all.
func Elements(root *html.Node, names ...string) []*html.Node {
	var found []*html.Node
	for n := range root.Descendants() {
		if n.Type == html.ElementNode && (len(names) == 0 || slices.Contains(names, n.Data)) {
			found = append(found, n)
		}
	}
	return found
}

// Text is all text of an element, its white space as one.
func Text(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// Offline holds if nothing of the page comes from elsewhere, and its policy forbids that anything does.
func Offline(t *testing.T, source string, root *html.Node) {
	t.Helper()
	for _, n := range Elements(root) {
		for _, a := range n.Attr {
			switch a.Key {
			case "src", "srcset", "data", "action", "poster", "background":
				t.Errorf("<%s %s=%q>", n.Data, a.Key, a.Val)
			case "href":
				if !strings.HasPrefix(a.Val, "#") {
					t.Errorf("<%s href=%q>", n.Data, a.Val)
				}
			}
			if strings.HasPrefix(a.Key, "on") {
				t.Errorf("<%s %s>", n.Data, a.Key)
			}
		}
		if slices.Contains([]string{"link", "iframe", "img", "object", "embed", "base"}, n.Data) {
			t.Errorf("<%s>", n.Data)
		}
	}
	for _, bad := range []string{"http://", "https://", "url(", "@import", "fetch(", "XMLHttpRequest", "import(", "ZgotmplZ"} {
		if strings.Contains(source, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	policy := ""
	for _, meta := range Elements(root, "meta") {
		if name, _ := Attribute(meta, "http-equiv"); name == "Content-Security-Policy" {
			policy, _ = Attribute(meta, "content")
		}
	}
	if !strings.HasPrefix(policy, "default-src 'none';") || strings.Contains(policy, "unsafe") {
		t.Errorf("the policy is %q", policy)
	}
}

// Accessible holds if who does not see the page can read it.
func Accessible(t *testing.T, root *html.Node) {
	t.Helper()
	ids := map[string]bool{}
	for _, n := range Elements(root) {
		if id, has := Attribute(n, "id"); has {
			if ids[id] {
				t.Errorf("two elements have the id %s", id)
			}
			ids[id] = true
		}
	}
	for _, n := range Elements(root, "a") {
		if href, _ := Attribute(n, "href"); !ids[strings.TrimPrefix(href, "#")] {
			t.Errorf("a link leads to %s, which is not there", href)
		}
	}
	if lang, _ := Attribute(Elements(root, "html")[0], "lang"); lang == "" {
		t.Error("the page does not say its language")
	}
	for _, svg := range Elements(root, "svg") {
		role, _ := Attribute(svg, "role")
		label, _ := Attribute(svg, "aria-label")
		hidden, _ := Attribute(svg, "aria-hidden")
		inLegend := false
		for p := svg.Parent; p != nil; p = p.Parent {
			if h, _ := Attribute(p, "aria-hidden"); h == "true" {
				inLegend = true
			}
		}
		if (role != "img" || label == "") && hidden != "true" && !inLegend {
			t.Errorf("a plot has role %q and label %q", role, label)
		}
	}
	for _, table := range Elements(root, "table") {
		if len(Elements(table, "caption")) != 1 {
			t.Errorf("a table has no caption: %s", Text(table))
		}
		heads := Elements(Elements(table, "thead")[0], "th")
		for _, th := range heads {
			if scope, _ := Attribute(th, "scope"); scope != "col" {
				t.Errorf("%s has the scope %q", Text(th), scope)
			}
		}
		for _, row := range Elements(Elements(table, "tbody")[0], "tr") {
			width := 0
			for _, cell := range Elements(row, "th", "td") {
				span := 1
				if s, has := Attribute(cell, "colspan"); has {
					span, _ = strconv.Atoi(s)
				}
				width += span
			}
			if width != len(heads) {
				t.Errorf("a row has %d cells below %d titles: %s", width, len(heads), Text(row))
			}
			if scope, _ := Attribute(Elements(row, "th")[0], "scope"); scope != "row" {
				t.Errorf("a row without a title: %s", Text(row))
			}
		}
	}
	for _, input := range Elements(root, "input") {
		labelled := false
		for p := input.Parent; p != nil; p = p.Parent {
			labelled = labelled || p.Data == "label"
		}
		if !labelled {
			t.Error("an input has no label")
		}
	}
}

// Coordinates holds if what was drawn lies in its plot: a number that is none, or far outside, is a mistake of arithmetic.
func Coordinates(t *testing.T, root *html.Node, atLeast int) {
	t.Helper()
	checked := 0
	for _, svg := range Elements(root, "svg") {
		box, _ := Attribute(svg, "viewbox")
		if box == "" {
			box, _ = Attribute(svg, "viewBox")
		}
		var left, top, width, height float64
		if _, err := fmt.Sscan(box, &left, &top, &width, &height); err != nil {
			t.Fatalf("a plot's box is %q", box)
		}
		for _, n := range Elements(svg) {
			for _, a := range n.Attr {
				limit := 0.0
				switch a.Key {
				case "x", "x1", "x2", "cx", "width":
					limit = left + width
				case "y", "y1", "y2", "cy", "height":
					limit = top + height
				default:
					continue
				}
				x, err := strconv.ParseFloat(a.Val, 64)
				if err != nil || math.IsNaN(x) || x < -0.1 || x > limit+0.1 {
					t.Errorf("<%s %s=%q> of %q", n.Data, a.Key, a.Val, box)
				}
				checked++
			}
		}
	}
	if checked < atLeast {
		t.Errorf("only %d coordinates", checked)
	}
}

// void elements have no end.
var void = []string{"meta", "input", "br", "hr", "link", "img", "wbr"}

// WellFormed holds if every element ends where it should: a browser would guess, and guess otherwise than meant.
func WellFormed(t *testing.T, source string) {
	t.Helper()
	z := html.NewTokenizer(strings.NewReader(source))
	var open []string
	for {
		kind := z.Next()
		name, _ := z.TagName()
		tag := string(name)
		switch kind {
		case html.ErrorToken:
			if len(open) > 0 {
				t.Errorf("never closed: %v", open)
			}
			return
		case html.StartTagToken:
			if !slices.Contains(void, tag) {
				open = append(open, tag)
			}
		case html.EndTagToken:
			if len(open) == 0 || open[len(open)-1] != tag {
				t.Errorf("</%s> closes %v", tag, open)
				return
			}
			open = open[:len(open)-1]
		}
	}
}
