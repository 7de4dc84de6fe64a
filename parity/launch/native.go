package launch

import (
	"context"
	"encoding/json"
	"fmt"

	"samebits/bridge/recording"
)

// Device is a device of the native engine, usable or not.
type Device struct {
	Name        string              `json:"name"`
	Problem     string              `json:"problem,omitempty"` // why it cannot be used
	Environment []recording.Setting `json:"environment,omitempty"`
}

// Devices asks the native plugin what it can open. It does so once: opening a GPU takes a moment.
func (l *Launcher) Devices(ctx context.Context) ([]Device, error) {
	if l.devices == nil {
		var err error
		if l.devices, err = l.findDevices(ctx); err != nil {
			return nil, err
		}
	}
	return l.devices, nil
}

func (l *Launcher) findDevices(ctx context.Context) ([]Device, error) {
	program, err := l.Predictor()
	if err != nil {
		return nil, err
	}
	out, err := run(ctx, "predictor", l.nativeEnvironment(), program, "doctor", "--json")
	if err != nil {
		return nil, err
	}
	var devices []Device
	if err := json.Unmarshal(out, &devices); err != nil {
		return nil, fmt.Errorf("what the native engine says of its devices: %w", err)
	}
	return devices, nil
}
