package samebits

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"samebits/native/device"
)

// counted is content that counts how often it was closed.
type counted struct{ closed atomic.Int32 }

func (c *counted) Close() error { c.closed.Add(1); return nil }

// loaded reserves an object on the host and loads it with counted content.
func loaded(t *testing.T) (int64, *counted) {
	t.Helper()
	number, err := Reserve("model")
	if err != nil {
		t.Fatal(err)
	}
	c := &counted{}
	if err := load(number, "host", nil, func(device.Device) (content, error) { return c, nil }); err != nil {
		t.Fatal(err)
	}
	return number, c
}

func codeOfError(t *testing.T, err error) string {
	t.Helper()
	var c *coded
	if !errors.As(err, &c) {
		t.Fatalf("%v has no code", err)
	}
	return c.code
}

func TestClosedObjectsAreRefused(t *testing.T) {
	number, c := loaded(t)
	if _, err := Close(-10, number); err != nil {
		t.Fatal(err)
	}
	if c.closed.Load() != 1 {
		t.Errorf("closed %d times", c.closed.Load())
	}
	if code := codeOfError(t, use(number, func(*object, *counted) error { return nil })); code != codeClosed {
		t.Errorf("code %s", code)
	}
	if _, err := Close(-11, number); err != nil {
		t.Errorf("a second close: %v", err)
	}
	if len(devicesInUse.all) != 0 {
		t.Errorf("%d devices are still open", len(devicesInUse.all))
	}
}

func TestViewsKeepMemory(t *testing.T) {
	number, c := loaded(t)
	var first, second int64
	err := use(number, func(o *object, _ *counted) error {
		first, second = o.view(), o.view()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Close(-12, number); err != nil {
		t.Fatal(err)
	}
	release := func(view int64) {
		t.Helper()
		if known, err := Release(view); !known || err != nil {
			t.Fatalf("release: %v, %v", known, err)
		}
	}
	release(first)
	time.Sleep(slice)
	if c.closed.Load() != 0 {
		t.Fatal("closed while an array lies in it")
	}
	release(second)
	for range 100 {
		if c.closed.Load() == 1 {
			return
		}
		time.Sleep(slice)
	}
	t.Error("the last view did not free the memory")
}

func TestClosedWhileItLoads(t *testing.T) {
	number, err := Reserve("model")
	if err != nil {
		t.Fatal(err)
	}
	inside, c := make(chan bool), &counted{}
	go func() {
		<-inside
		_, _ = Discard(number)
	}()
	err = load(number, "host", nil, func(device.Device) (content, error) {
		close(inside)
		time.Sleep(2 * slice)
		return c, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if c.closed.Load() == 1 {
			return
		}
		time.Sleep(slice)
	}
	t.Error("what was loaded for nobody stays")
}

func TestFailedLoadsGiveTheDeviceBack(t *testing.T) {
	number, err := Reserve("model")
	if err != nil {
		t.Fatal(err)
	}
	wrong := errors.New("on purpose")
	if err := load(number, "host", nil, func(device.Device) (content, error) { return nil, wrong }); !errors.Is(err, wrong) {
		t.Errorf("error %v", err)
	}
	if len(devicesInUse.all) != 0 {
		t.Errorf("%d devices are still open", len(devicesInUse.all))
	}
	if err := use(number, func(*object, *counted) error { return nil }); err == nil || !strings.Contains(err.Error(), "not loaded") {
		t.Errorf("use gave %v", err)
	}
	if _, err := Discard(number); err != nil {
		t.Fatal(err)
	}
}

func TestDevicesAreShared(t *testing.T) {
	a, _ := loaded(t)
	b, _ := loaded(t)
	devices := func() int { return len(devicesInUse.all) }
	if devices() != 1 {
		t.Errorf("%d devices for two models on one", devices())
	}
	for i, number := range []int64{a, b} {
		if _, err := Close(int64(-20-i), number); err != nil {
			t.Fatal(err)
		}
	}
	if devices() != 0 {
		t.Errorf("%d devices are still open", devices())
	}
}
