#include "fuzz/replay_corpus.h"

TEST(Corpus, EveryKeptInput) { tilewright::fuzz::replay_corpus("language"); }
