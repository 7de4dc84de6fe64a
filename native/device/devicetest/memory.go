package devicetest

import (
	"bytes"
	"testing"
)

func memoryAlignment(t *testing.T, b *bench) {
	for _, size := range []int64{1, 511, 512, 513, 1 << 20} {
		m := b.alloc(size)
		b.storages = append(b.storages, m)
		if m.Address() == 0 || m.Address()%512 != 0 {
			t.Errorf("%d bytes are at %#x", size, m.Address())
		}
		if m.Bytes() != size {
			t.Errorf("%d bytes have size %d", size, m.Bytes())
		}
	}
}

func memoryWriteRead(t *testing.T, b *bench) {
	m := b.alloc(1000)
	b.storages = append(b.storages, m)
	want := bytes.Repeat([]byte{0xa5}, 1000)
	b.must(m.Fill(0, 1000, 0xa5))
	copy(want[10:], "samebits")
	b.must(m.Write(10, []byte("samebits")))
	copy(want[990:], "0123456789")
	b.must(m.Write(990, []byte("0123456789")))
	clear(want[500:503])
	b.must(m.Fill(500, 3, 0))
	got := make([]byte, 1000)
	b.must(m.Read(0, got))
	if !bytes.Equal(got, want) {
		t.Errorf("read %x, wanted %x", got, want)
	}
	part := make([]byte, 4)
	b.must(m.Read(992, part))
	if string(part) != "2345" {
		t.Errorf("read %q at 992", part)
	}
	b.must(m.Write(1000, nil))
	b.must(m.Read(1000, nil))
	b.must(m.Fill(1000, 0, 1))
}

func memoryBounds(t *testing.T, b *bench) {
	m := b.alloc(100)
	b.storages = append(b.storages, m)
	buffer := make([]byte, 10)
	for _, offset := range []int64{-1, 91, 100, 101, 1 << 62, -1 << 63} {
		if m.Write(offset, buffer) == nil {
			t.Errorf("wrote 10 bytes at %d of 100", offset)
		}
		if m.Read(offset, buffer) == nil {
			t.Errorf("read 10 bytes at %d of 100", offset)
		}
		if m.Fill(offset, 10, 0) == nil {
			t.Errorf("filled 10 bytes at %d of 100", offset)
		}
	}
	if m.Fill(0, -1, 0) == nil {
		t.Errorf("filled -1 bytes")
	}
	if _, err := b.Alloc(-1); err == nil {
		t.Errorf("allocated -1 bytes")
	}
	if _, err := b.Alloc(1 << 60); err == nil {
		t.Errorf("allocated an exbibyte")
	}
}

func memoryAccounts(t *testing.T, b *bench) {
	before := b.InUse()
	m, n := b.alloc(1<<20), b.alloc(1<<21)
	if got := b.InUse() - before; got != 3<<20 {
		t.Errorf("3 MiB count as %d bytes", got)
	}
	peak := b.Peak()
	if peak < before+3<<20 {
		t.Errorf("the peak is %d with %d in use", peak, b.InUse())
	}
	b.must(m.Free())
	b.must(n.Free())
	if b.InUse() != before {
		t.Errorf("%d bytes in use after all was freed, %d before", b.InUse(), before)
	}
	if b.Peak() != peak {
		t.Errorf("the peak went from %d to %d", peak, b.Peak())
	}
}

func memoryFreeTwice(t *testing.T, b *bench) {
	m := b.alloc(100)
	b.must(m.Free())
	if m.Free() == nil {
		t.Errorf("freed twice")
	}
	if m.Write(0, []byte{1}) == nil || m.Read(0, []byte{1}) == nil || m.Fill(0, 1, 0) == nil {
		t.Errorf("used after it was freed")
	}
}
