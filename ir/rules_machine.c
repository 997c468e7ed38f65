/* Verifier rules of the machine ops (rules_machine.def). */
#include "ir/rules.h"
