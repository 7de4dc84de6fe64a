package samebits

import (
	"errors"
	"testing"
	"time"
)

// await waits for a job as samebits/_calls.py does.
func await(t *testing.T, ticket int64) (string, error) {
	t.Helper()
	for range 500 {
		if result, err := Await(ticket); result != "" || err != nil {
			return result, err
		}
	}
	t.Fatal("the job does not end")
	return "", nil
}

func TestShortJobsEndInTheCall(t *testing.T) {
	before := jobs.size()
	result, err := run(-2, func(*job) (string, error) { return "{}", nil })
	if result != "{}" || err != nil {
		t.Errorf("result %q, %v", result, err)
	}
	if jobs.size() != before {
		t.Error("a job that is done is still known")
	}
}

func TestLongJobsAreAwaited(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
	}{{"well", nil}, {"failed", errors.New("on purpose")}} {
		t.Run(c.name, func(t *testing.T) {
			before := jobs.size()
			result, err := run(-3, func(*job) (string, error) {
				time.Sleep(3 * slice)
				return "{}", c.err
			})
			if result != "" || err != nil {
				t.Fatalf("a long job gave %q, %v at once", result, err)
			}
			if _, err = await(t, -3); (err != nil) != (c.err != nil) {
				t.Errorf("error %v, want %v", err, c.err)
			}
			if jobs.size() != before {
				t.Error("a job that is done is still known")
			}
			if _, err := Await(-3); err == nil {
				t.Error("a job was awaited twice")
			}
		})
	}
}

func TestAbandonedJobsDoNotTouchTheCaller(t *testing.T) {
	begun, gone, ended := make(chan bool), make(chan bool), make(chan error)
	touched := 0
	_, _ = run(-4, func(j *job) (string, error) {
		err := j.touch(func() error { touched++; return nil })
		if err != nil {
			t.Errorf("before it was abandoned: %v", err)
		}
		close(begun)
		<-gone
		ended <- j.touch(func() error { touched++; return nil })
		return "{}", nil
	})
	<-begun
	if known, err := Abandon(-4); !known || err != nil {
		t.Errorf("abandon: %v, %v", known, err)
	}
	close(gone)
	if err := <-ended; !errors.Is(err, errAbandoned) {
		t.Errorf("touch gave %v", err)
	}
	if touched != 1 {
		t.Errorf("the caller's memory was touched %d times, want once", touched)
	}
	if known, err := Abandon(-4); known || err != nil {
		t.Errorf("abandoned again: %v, %v", known, err)
	}
}

func TestAbandonWaitsForATouch(t *testing.T) {
	inside, done := make(chan bool), false
	_, _ = run(-5, func(j *job) (string, error) {
		return "{}", j.touch(func() error {
			close(inside)
			time.Sleep(3 * slice)
			done = true
			return nil
		})
	})
	<-inside
	if _, err := Abandon(-5); err != nil {
		t.Fatal(err)
	}
	if !done {
		t.Error("the caller's memory was still in use")
	}
}
