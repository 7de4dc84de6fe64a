package host_test

import (
	"testing"

	"samebits/bridge/host"
	"samebits/bridge/tensor"
)

// What the wire itself costs: a start, a step of a plugin that does next to nothing, and a call.
func BenchmarkWire(b *testing.B) {
	for name, config := range map[string]func(testing.TB) host.Config{"go": role("good"), "python": pythonConfig} {
		b.Run(name+"/start", func(b *testing.B) {
			for b.Loop() {
				p, err := host.Start(b.Context(), config(b))
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if err := p.Stop(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
		b.Run(name+"/step", func(b *testing.B) {
			p := benchmarked(b, config(b))
			for b.Loop() {
				if err := p.Step(b.Context(), 0, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/call", func(b *testing.B) {
			p := benchmarked(b, config(b))
			for b.Loop() {
				if _, err := p.Stats(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// benchmarked is a plugin that may step.
func benchmarked(b *testing.B, config host.Config) *host.Plugin {
	b.Helper()
	p, err := host.Start(b.Context(), config)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = p.Stop() })
	bank, _, err := p.Memory().AllocBank(b.Context(), []tensor.Spec{spec})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := p.Load(b.Context(), host.LoadRequest{Weights: bank[0].Region}); err != nil {
		b.Fatal(err)
	}
	banks := []host.Bank{bank}
	if _, err := p.Prepare(b.Context(), host.PrepareRequest{Inputs: banks, Outputs: banks}); err != nil {
		b.Fatal(err)
	}
	return p
}
