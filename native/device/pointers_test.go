package device

import (
	"reflect"
	"slices"
	"testing"
)

// Every pointer in a command, of whatever field, is given.
func TestPointers(t *testing.T) {
	commands := []Command{&Kernel{}, &Convolution{}, &BatchNorm{}, &BatchNormTraining{}, &BatchNormBackward{}, &Matmul{},
		&MatVec{}, &Linear{}, &Copy{}, &Fill{}}
	for _, c := range commands {
		next := 1
		number(reflect.ValueOf(c).Elem(), &next)
		if k, ok := c.(*Kernel); ok {
			k.Args = []any{Pointer{Storage: 1}, int32(5), Pointer{Storage: 2}}
			next = 3
		}
		var got []int
		for _, p := range Pointers(c) {
			got = append(got, p.Storage)
		}
		slices.Sort(got)
		var want []int
		for i := 1; i < next; i++ {
			want = append(want, i)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%T: storages %v, wanted %v", c, got, want)
		}
	}
	if got := Pointers(&Linear{Bias: Tensor{Pointer: Pointer{Storage: 7}}}); len(got) != 3 {
		t.Errorf("a linear without a bias has %v", got)
	}
}

// number gives each pointer below v a storage of its own, and each tensor a size.
func number(v reflect.Value, next *int) {
	if p, ok := v.Addr().Interface().(*Pointer); ok {
		p.Storage = *next
		*next++
		return
	}
	if v.Kind() != reflect.Struct {
		return
	}
	if t, ok := v.Addr().Interface().(*Tensor); ok {
		t.Sizes = []int64{1}
	}
	for i := range v.NumField() {
		number(v.Field(i), next)
	}
}
