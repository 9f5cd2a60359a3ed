package randomizer_test

import (
	"fmt"

	"github.com/panlearn/panlearn/randomizer"
)

// A cohort of one thousand users, and the estimate of the sum of their vectors.
func Example() {
	params := randomizer.Params{Dim: 2, ClipNorm: 1, Levels: 64, Trials: 40, Coin: randomizer.Fair}
	device, err := randomizer.NewVectorSum(params, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	const users = 1000
	totals := make([]uint64, params.Dim)
	var counts []uint32
	for range users {
		if counts, err = device.Encode(counts, []float64{0.6, -0.8}); err != nil {
			fmt.Println(err)
			return
		}
		for j, c := range counts {
			totals[j] += uint64(c)
		}
	}
	sum, err := params.Decode(nil, totals, users, users*uint64(params.Trials))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("mean about (%.1f, %.1f)\n", sum[0]/users, sum[1]/users)
	// Output: mean about (0.6, -0.8)
}
