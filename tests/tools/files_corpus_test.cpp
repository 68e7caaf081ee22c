#include "fuzz/replay_corpus.h"

TEST(FilesCorpus, EveryInputIsHandled) { tilewright::fuzz::replay_corpus("files"); }
