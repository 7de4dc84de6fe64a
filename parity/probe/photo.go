package probe

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"io/fs"
	"sync"

	"samebits/bridge/tensor"
	"samebits/goldens"
)

// picture holds rows of red, green, blue bytes.
type picture struct {
	width, height int64
	pixels        []byte
}

var pictures = sync.OnceValues(func() ([]picture, error) {
	names, err := fs.Glob(goldens.Images, "images/*.png") // sorted
	if err != nil {
		return nil, err
	}
	var all []picture
	for _, name := range names {
		data, err := goldens.Images.ReadFile(name)
		if err != nil {
			return nil, err
		}
		img, err := png.Decode(bytes.NewReader(data))
		if err != nil {
			return nil, fmt.Errorf("decode %s: %w", name, err)
		}
		all = append(all, flatten(img))
	}
	return all, nil
})

func flatten(img image.Image) picture {
	b := img.Bounds()
	p := picture{int64(b.Dx()), int64(b.Dy()), make([]byte, 0, 3*b.Dx()*b.Dy())}
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			red, green, blue, _ := img.At(x, y).RGBA()
			p.pixels = append(p.pixels, byte(red>>8), byte(green>>8), byte(blue>>8))
		}
	}
	return p
}

// photo gives one picture for each image of the batch, the pictures in turn; every second turn is mirrored.
func photo(spec tensor.Spec, put func(int64, float32)) error {
	all, err := pictures()
	if err != nil {
		return err
	}
	turn := int64(len(all))
	for n := range spec.Sizes[0] {
		p := &all[n%turn]
		p.resize(spec, n, area{0, 0, p.width, p.height}, n/turn%2 == 1, put)
	}
	return nil
}

// area is a part of a picture.
type area struct{ left, top, width, height int64 }

// resize makes image n of a batch of a part of the picture.
func (p *picture) resize(spec tensor.Spec, n int64, from area, mirrored bool, put func(int64, float32)) {
	height, width := spec.Sizes[2], spec.Sizes[3]
	columns, rows := taps(from.left, from.width, width), taps(from.top, from.height, height)
	for y, row := range rows {
		for x := range columns {
			column := columns[x]
			if mirrored {
				column = columns[len(columns)-1-x]
			}
			for c := range int64(3) {
				at := ((n*3+c)*height+int64(y))*width + int64(x)
				put(at, float32(p.blend(row, column, c))/255)
			}
		}
	}
}

// A tap is a place between two pixels of a line: near + part/65536.
type tap struct{ near, far, part int64 }

// taps puts the centres of to pixels over a line of from pixels, which begins at start.
func taps(start, from, to int64) []tap {
	line := make([]tap, to)
	for i := range line {
		at := max((2*int64(i)+1)*from*65536/(2*to)-32768, 0)
		near := min(at>>16, from-1)
		line[i] = tap{start + near, start + min(near+1, from-1), at & 65535}
	}
	return line
}

func (p *picture) blend(row, column tap, channel int64) byte {
	at := func(y, x int64) int64 { return int64(p.pixels[(y*p.width+x)*3+channel]) }
	upper := at(row.near, column.near)*(65536-column.part) + at(row.near, column.far)*column.part
	lower := at(row.far, column.near)*(65536-column.part) + at(row.far, column.far)*column.part
	return byte((upper*(65536-row.part) + lower*row.part + 1<<31) >> 32)
}
