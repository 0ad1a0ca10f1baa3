package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ShadowReportName is the name of the one ShadowReport of a cluster.
const ShadowReportName = "nap"

// ShadowReport is what a cluster's nodes have cost under another autoscaler and what the same
// pods would have cost with nap, as nap-controller --shadow keeps it for 35 days; nap shadow
// reads it.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=shadowreports,singular=shadowreport,scope=Cluster,categories={nap}
// +kubebuilder:printcolumn:name="Paid",type="string",JSONPath=".paid"
// +kubebuilder:printcolumn:name="With nap",type="string",JSONPath=".planned"
// +kubebuilder:printcolumn:name="Saved",type="string",JSONPath=".saved"
// +kubebuilder:printcolumn:name="Watched",type="string",JSONPath=".watched"
// +kubebuilder:printcolumn:name="Written",type="date",JSONPath=".written"
type ShadowReport struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Form is the version of what the data hold; a reader that does not know it must not
	// read them.
	Form int32 `json:"form"`
	// Paid is what the nodes have cost in dollars in the time that was watched.
	Paid string `json:"paid"`
	// Planned is what nap's plans for the same pods would have cost in that time, in dollars.
	Planned string `json:"planned"`
	// Saved is how much less that is than what was paid, such as 37%.
	Saved string `json:"saved"`
	// Watched is how long samples were taken, such as 162.4h.
	Watched string `json:"watched"`
	// Written is when the controller wrote the report.
	Written metav1.Time `json:"written"`
	// Data are a gzip stream of JSON of at most 512 KiB.
	//
	// +kubebuilder:validation:MaxLength=699052
	Data []byte `json:"data"`
}

// ShadowReportList is a list of ShadowReports.
//
// +kubebuilder:object:root=true
type ShadowReportList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ShadowReport `json:"items"`
}
