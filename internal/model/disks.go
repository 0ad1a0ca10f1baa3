package model

// Labels that say which data disks the machines of a size can attach, as "true" or "false".
const (
	// LabelPremiumStorage is about Premium SSD and Premium SSD v2.
	LabelPremiumStorage = "karpenter.azure.com/sku-storage-premium-capable"
	// LabelUltraSSD is about ultra disks, which are switched on when a machine is bought.
	LabelUltraSSD = "karpenter.azure.com/sku-storage-ultra-ssd"
)

// DisksOf names what machines have that attach the disks which a label is about, as sentences
// have it; empty for labels of other things.
func DisksOf(label string) string {
	switch label {
	case LabelPremiumStorage:
		return "premium storage"
	case LabelUltraSSD:
		return "ultra disks"
	}
	return ""
}
