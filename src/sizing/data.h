// The texts of data/*.json, in the program.
#pragma once

namespace rowtide::sizing::data {

extern const char* const acceptance;
extern const char* const devices;
extern const char* const engines;
extern const char* const hit_shares;
extern const char* const models;

}  // namespace rowtide::sizing::data
