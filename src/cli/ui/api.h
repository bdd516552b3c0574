// What the Explorer page asks for: the same plans as `rowtide plan --json`.
#pragma once

#include "cli/ui/http_message.h"

namespace rowtide::cli::ui {

/// Answers a request for a file of the page or for the API:
///   GET /api/catalog            what there is to choose from
///   GET /api/plan?OPTION=VALUE  a plan, or 400 with {"error": {"code", "message"}}
/// Of the API only this page's own requests: those that another site has a browser send are refused. Without
/// `allows_paths` no plan is made of a file: every user of the machine can ask, and the answers are of this one's
/// files.
HttpResponse answer_page(const HttpRequest& request, bool allows_paths);

}  // namespace rowtide::cli::ui
