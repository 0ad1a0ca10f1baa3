package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LedgerName is the name of the LedgerPage that is being written. Those of days that are
// over are called after it and the day: nap-2026-11-22.
const LedgerName = "nap"

// LedgerPage is what was bought, moved and paid on one day, in UTC. The page of the day
// that is not over also holds what is still there. Pages are kept for at least 30 days.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=ledgerpages,singular=ledgerpage,scope=Cluster,categories={nap}
// +kubebuilder:printcolumn:name="Day",type="string",JSONPath=".day"
// +kubebuilder:printcolumn:name="Dollars",type="string",JSONPath=".cost"
// +kubebuilder:printcolumn:name="Machines",type="integer",JSONPath=".machines"
// +kubebuilder:printcolumn:name="Written",type="date",JSONPath=".written"
type LedgerPage struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Form is the version of what the data hold; a reader that does not know it must not
	// read them.
	Form int32 `json:"form"`
	// Day is the day in UTC, such as 2026-11-22.
	Day string `json:"day"`
	// Cost is what was paid on that day in dollars.
	Cost string `json:"cost"`
	// Machines is how many machines ended on that day or are there.
	Machines int32 `json:"machines"`
	// Written is when the controller wrote the page.
	Written metav1.Time `json:"written"`
	// Data are a gzip stream of JSON of at most 768 KiB.
	//
	// +kubebuilder:validation:MaxLength=1048576
	Data []byte `json:"data"`
}

// LedgerPageList is a list of LedgerPages.
//
// +kubebuilder:object:root=true
type LedgerPageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []LedgerPage `json:"items"`
}
