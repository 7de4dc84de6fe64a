package predict_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"samebits/bridge/arm"
	"samebits/bridge/predict"
	"samebits/bridge/tensor"
)

// A program that predicts on a GPU, by graphs where the cell is certified there.
func Example() {
	ctx := context.Background()
	file, err := os.ReadFile("resnet18/recording.pb")
	if err != nil {
		fmt.Println(err)
		return
	}
	weights, err := os.ReadFile("resnet18/weights.safetensors")
	if err != nil {
		fmt.Println(err)
		return
	}
	model, err := predict.Open(ctx, predict.Options{Plugin: "bin/samebits-predictor", Device: "cuda:0", CUDAGraph: "true"},
		predict.Recording{File: file, Weights: weights})
	if errors.Is(err, arm.ErrUnimplemented) {
		fmt.Println("not certified here:", err) // the cell, and all reasons
		return
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	defer model.Close()
	image := make([]byte, 4*3*224*224)
	outputs, err := model.Predict(ctx, predict.Input{Sizes: []int64{1, 3, 224, 224}, DType: tensor.Float32, Data: image})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(outputs["output"]), model.GraphInfo().Replays)
}
