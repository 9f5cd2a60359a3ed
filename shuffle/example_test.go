package shuffle_test

import (
	"encoding/binary"
	"fmt"

	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/shuffle"
)

// One round of a cohort of 1000 users with floors: 990 reports arrive, one of them twice.
func Example() {
	params := randomizer.Params{Dim: 2, ClipNorm: 1, Levels: 64, Trials: 40, FloorTrials: 10000, Coin: randomizer.Fair}
	mixer, err := shuffle.NewMixer(shuffle.Config{Params: params, Cohort: 1000, Minimum: 900})
	if err != nil {
		fmt.Println(err)
		return
	}
	device, err := randomizer.NewVectorSum(params, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	var counts []uint32
	for user := range uint32(990) {
		if counts, err = device.Encode(counts, []float64{0.6, -0.8}); err != nil {
			fmt.Println(err)
			return
		}
		var id shuffle.ReportID
		binary.BigEndian.PutUint32(id[:], user)
		report := params.Pack(nil, counts)
		mixer.Add([]shuffle.ReportID{id}, report)
		if user == 7 {
			fmt.Println("again:", mixer.Add([]shuffle.ReportID{id}, report))
		}
	}
	rel, err := mixer.Close()
	if err != nil {
		fmt.Println(err)
		return
	}
	sum, err := params.Decode(nil, rel.Totals, rel.Users, rel.NoiseTrials)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(rel.Users, "users,", rel.NoiseTrials, "trials")
	fmt.Printf("mean about (%.1f, %.1f)\n", sum[0]/990, sum[1]/990)
	// Output:
	// again: duplicate
	// 990 users, 60000 trials
	// mean about (0.6, -0.8)
}
