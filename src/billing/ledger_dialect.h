// What differs between the databases a ledger can be in: here, and nowhere else.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace soci {
class session;
}

namespace firstseen {

class LedgerDialect {
 public:
  virtual ~LedgerDialect() = default;

  // The dialect of a connection "NAME://...". InvalidArgument lists the ones there are.
  static absl::StatusOr<const LedgerDialect*> Find(std::string_view connection);

  // Opens; may throw soci::soci_error.
  virtual void Connect(std::string_view connection, soci::session* session) const = 0;
  // The file behind the connection, to be created with mode 0600; empty when there is none.
  virtual std::string DatabaseFile(std::string_view connection) const = 0;
  // Begins a transaction that will write.
  virtual std::string_view begin() const = 0;
  // Counts tables by name: to be continued with " = 'NAME'".
  virtual std::string_view count_tables() const = 0;
  // Type of a short text that is compared byte by byte, and of a long one.
  virtual std::string_view text_type() const = 0;
  virtual std::string_view long_text_type() const = 0;
};

}  // namespace firstseen
