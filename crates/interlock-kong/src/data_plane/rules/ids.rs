//! The rules about gateways: router flavors (RF01 to RF21), DataPlane validation and rollouts.

use interlock_core::api::rule::rules;

rules! {
    /// A DataPlane names the image of its container `proxy`.
    DATA_PLANE_IMAGE = "dataplane-image" in Requests;
    /// A DataPlane has no database.
    DATA_PLANE_DATABASE = "dataplane-database" in Requests;
    /// Kong listens on the ports that a DataPlane's Service leads to.
    DATA_PLANE_PORTS = "dataplane-ports" in Requests;
    /// The override of Service selectors is a list of labels, and not beside `blueGreen`.
    DATA_PLANE_SELECTOR = "dataplane-selector" in Requests;
    /// The name of a DataPlane fits into a label.
    DATA_PLANE_NAME = "dataplane-name" in Requests;
    /// The pod template of a DataPlane is one that the API server takes.
    DATA_PLANE_TEMPLATE = "dataplane-template" in Requests;
    /// The autoscaler of a DataPlane is one that the API server takes.
    DATA_PLANE_SCALING = "dataplane-scaling" in Requests;
    /// What Interlock does not carry out of a DataPlane.
    DATA_PLANE_NOT_CARRIED_OUT = "dataplane-not-carried-out" in Requests;
    /// What is staged must not reach live pods directly.
    DATA_PLANE_STAGED = "dataplane-staged" in Requests;
    /// A promotion is requested of what is staged.
    DATA_PLANE_PROMOTION = "dataplane-promotion" in Requests;
    /// A fixed name of the ingress Service, beside `blueGreen`.
    DATA_PLANE_SERVICE_NAME = "dataplane-service-name" in Requests;
    /// What is live of a DataPlane is neither deleted nor stripped of its marks by people.
    DATA_PLANE_LIVE_CHILD = "dataplane-live-child" in Requests;
    /// The limit of the history is a number.
    DATA_PLANE_HISTORY_LIMIT = "dataplane-history-limit" in Requests;
    /// The value is a router flavor.
    FLAVOR_INVALID = "RF01" in Flavors;
    /// A rolling change of flavor must not deadlock or lose routes.
    FLAVOR_IN_PLACE = "RF02" in Flavors;
    /// Flavors change one step at a time.
    FLAVOR_SKIP = "RF03" in Flavors;
    /// `expressions` needs Kong 3.4.
    FLAVOR_VERSION = "RF04" in Flavors;
    /// Routes that the new flavor does not serve.
    FLAVOR_ROUTES = "RF05" in Flavors;
    /// One staged step at a time.
    FLAVOR_STAGED = "RF06" in Flavors;
    /// A staged flavor must not reach live pods directly.
    FLAVOR_UNSTAGED = "RF07" in Flavors;
    /// A version of Kong that does not know fields beside expressions.
    FLAVOR_FIELDS = "RF08" in Flavors;
    /// Another engine of regular expressions.
    FLAVOR_REGEX = "RF09" in Flavors;
    /// The flavor cannot be determined.
    FLAVOR_UNKNOWN = "RF10" in Flavors;
    /// Another version of Kong routes differently.
    FLAVOR_IMAGE = "RF12" in Flavors;
    /// `traditional` is deprecated.
    FLAVOR_DEPRECATED = "RF13" in Flavors;
    /// A variable without an effect.
    FLAVOR_NO_EFFECT = "RF14" in Flavors;
    /// A variable, and a file beside it.
    FLAVOR_EXCLUSIVE = "RF15" in Flavors;
    /// Two entries that differ.
    FLAVOR_TWICE = "RF16" in Flavors;
    /// The configuration producer has to follow.
    FLAVOR_PRODUCER = "RF17" in Flavors;
    /// A ConfigMap or Secret changes the flavor of gateways.
    FLAVOR_SOURCE = "RF18" in Flavors;
    /// Allowed, as no pod runs.
    FLAVOR_ALLOWED = "RF19" in Flavors;
    /// The preview needs a configuration producer of its own.
    FLAVOR_PREVIEW = "RF20" in Flavors;
    /// One configuration producer, one dialect.
    FLAVOR_DIALECTS = "RF21" in Flavors;
}
