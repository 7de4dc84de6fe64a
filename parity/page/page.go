// Package page has what the HTML pages of this program share: the head with its policy, style, scripts, and the pieces of
// plots. A page is one file that loads nothing, can be read without scripts, and is the same for the same report.
package page

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"strings"

	"samebits/parity/report"
)

//go:embed page.html
var files embed.FS

//go:embed style.css
var style string

//go:embed script.js
var script string

// Head is what stands above a page's own words, and the script below them.
type Head struct {
	Title  string
	Policy string
	Style  template.CSS
	Script template.JS
}

// NewHead adds a page's own style and script to those of all pages. The policy lets nothing else run, and nothing be loaded.
func NewHead(title, ownStyle, ownScript string) Head {
	s, j := style+ownStyle, script+ownScript
	return Head{Title: title, Style: template.CSS(s), Script: template.JS(j),
		Policy: fmt.Sprintf("default-src 'none'; style-src %s; script-src %s; base-uri 'none'; form-action 'none'", hash(s), hash(j))}
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// Templates are the shared ones, with functions of the page's own, to which the page adds its files.
func Templates(own template.FuncMap) *template.Template {
	shared := template.FuncMap{"size": report.Size, "join": func(words []string) string { return strings.Join(words, ", ") }}
	return template.Must(template.New("").Funcs(shared).Funcs(own).ParseFS(files, "*.html"))
}
