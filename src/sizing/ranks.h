// Over how many ranks a model can be split, and requests on other numbers of devices.
#pragma once

#include <cstdint>
#include <string>

#include "sizing/request.h"

namespace rowtide::sizing {

/// What stands against `tp` tensor-parallel ranks: "does not divide the 24 attention heads"; empty if nothing. With
/// `ep` above 1 experts stay whole.
std::string why_not_split(const Model& model, std::uint32_t tp, std::uint32_t ep);

/// The numbers of ranks, of 64 at most, that nothing stands against: "1, 2, 4, 8".
std::string splits_of(const Model& model, std::uint32_t ep);

/// The most ranks that divide `devices` and that nothing stands against; 1 always is such a number.
std::uint32_t widest_split(const Model& model, std::uint32_t devices, std::uint32_t ep);

/// The fewest nodes of at most `per_node` devices that share `devices` evenly.
std::uint32_t fewest_nodes(std::uint32_t devices, std::uint32_t per_node);

/// The request on `devices`, in as few nodes as hold them, split over `tp`; its price follows the devices.
Request on_devices(const Request& request, std::uint32_t devices, std::uint32_t tp, std::uint32_t ep);

}  // namespace rowtide::sizing
