#include "bootstrap/options_config.hpp"

#include "base/options.hpp"
#include "machine/machine_file.hpp"
#include "runtime/arrivals.hpp"
#include "runtime/assumed.hpp"

namespace paceline {

WorldConfig config_from_options() {
  const auto number = [](Option option) { return static_cast<int>(number_of(option)); };
  WorldConfig config;
  config.timeout_ms = number(Option::timeout_ms);
  config.start_timeout_ms = number(Option::start_timeout_ms);
  config.warn_ms = number(Option::warn_ms);
  config.stopped_ms = number(Option::stopped_ms);
  config.progress = text_of(Option::progress) == "caller" ? Progress::caller : Progress::thread;
  config.shm_dir = text_of(Option::shm_dir);
  config.shm_bytes = static_cast<std::size_t>(number_of(Option::shm_bytes));
  config.stage_bytes = static_cast<std::size_t>(number_of(Option::stage_bytes));
  config.single_copy = text_of(Option::single_copy);
  config.huge_pages = text_of(Option::huge_pages) == "on";
  for (int i = 0; i < kCollectives; ++i)
    config.algorithms[static_cast<std::size_t>(i)] =
        word_for(Option::algorithm, name_of(static_cast<Collective>(i)));
  const Pieces pieces = pieces_from(text_of(Option::segments));
  config.cut = {.segments = pieces.number, .window = number(Option::window),
                .segment_bytes = pieces.bytes};
  for (Numbers one : {Numbers::fast, Numbers::stable, Numbers::canonical})
    if (text_of(Option::numbers) == name_of(one)) config.numbers = one;
  config.machine = text_of(Option::machine);
  (void)assumed_by(config.machine);   // throws if it is wrong
  config.machine_dir = machine_folder();
  config.arrival = text_of(Option::predict);
  (void)expected_by(config.arrival);   // throws if it is wrong
  config.record_dir = text_of(Option::record_dir);
  config.record_signal = number(Option::record_signal);
  config.profile_dir = text_of(Option::profile);
  config.profile_bytes = static_cast<std::size_t>(number_of(Option::profile_bytes));
  config.node = text_of(Option::node);
  config.only_mpi = text_of(Option::transport) == "mpi";
  config.only_shm = text_of(Option::transport) == "shm";
  if (const std::string library = text_of(Option::mpi); !library.empty())
    config.mpi_libraries = {library};
  return config;
}

}  // namespace paceline
