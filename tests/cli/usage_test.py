"""Commands, options, help, version, exit codes and the log level."""
import subprocess
import unittest

from program import DONE, FAILED, MODEL, PROGRAM, ProgramTest, USAGE

COMMANDS = ["doctor", "inspect", "address", "rows", "generate", "try", "bench", "plan", "ui", "calibrate"]


class Usage(ProgramTest):
    def test_help_lists_the_commands_and_the_exit_codes(self):
        text = self.succeed("--help").output
        for words in [*COMMANDS, "Examples:", "Exit codes: 0 done", "3 input", "ROWTIDE_LOG"]:
            self.assertIn(words, text)
        self.assertEqual(self.succeed("-h").output, text)

    def test_each_command_has_help_with_examples(self):
        for command in COMMANDS:
            with self.subTest(command):
                ended = self.succeed(command, "--help")
                for words in [f"rowtide {command} ", "Examples:\n  rowtide " + command, "Exit codes: 0 done", "--json"]:
                    self.assertIn(words, ended.output)
                self.assertEqual(ended.messages, "")

    def test_version(self):
        self.assertRegex(self.succeed("--version").output, r"^rowtide \d+\.\d+\.\d+\n$")

    def test_no_command(self):
        self.assertIn("no command", self.run_program().messages)
        self.assertEqual(self.run_program().code, USAGE)

    def test_an_unknown_command_names_the_nearest(self):
        self.fail_with(USAGE, "usage", "inspekt", MODEL, words=["'inspekt'", "did you mean 'inspect'?"])
        self.assertNotIn("did you mean", self.fail_with(USAGE, "usage", "xylophone", words=["'xylophone'"]))

    def test_an_unknown_option_names_the_nearest(self):
        for command, given, nearest in [("inspect", "--jsn", "--json"), ("rows", "--id=4", "--ids"),
                                        ("generate", "--thraeds", "--threads"), ("address", "--tokns", "--tokens")]:
            with self.subTest(command):
                ended = self.run_program(command, given, "x")
                self.assertEqual(ended.code, USAGE)
                self.assertIn(f"unknown option '{given.split('=')[0]}' (did you mean '{nearest}'?)", ended.messages)
                self.assertIn(f"rowtide {command} --help", ended.messages)

    def test_what_is_missing_or_too_much(self):
        self.fail_with(USAGE, "usage", "inspect", words=["PATH is required"])
        self.fail_with(USAGE, "usage", "inspect", MODEL, "second", words=["unexpected argument 'second'"])
        self.fail_with(USAGE, "usage", "rows", MODEL, words=["--ids is required"])
        self.fail_with(USAGE, "usage", "rows", MODEL, "--ids", words=["--ids"])

    def test_an_empty_value_is_a_value(self):
        family = ["address", "--family", "qwen_ple"]
        for command, option, rest in [(family, "--tokens", []), (family + ["--tokens", "7"], "--history", []),
                                      (["inspect", MODEL], "--jsn", []), (["rows", MODEL], "--ids", []),
                                      (["rows", MODEL, "--ids", "1"], "--format", []),
                                      (family + ["--tokens", "7"], "--history", ["5"]),
                                      (["bench", "rows", MODEL], "--method", ["--repeat", "1"])]:
            with self.subTest(command, option=option, rest=rest):
                joined = self.run_program(*command, option + "=", *rest, "--json")
                apart = self.run_program(*command, option, "", *rest, "--json")
                self.assertEqual((joined.code, joined.output), (apart.code, apart.output))
        self.fail_with(USAGE, "usage", *family, "--tokens", "1", "--history=", "5", words=["one of PATH, --family"])
        self.assertEqual(self.json(*family, "--tokens=")["tables"][0]["rows"], [])
        # What follows an option's name is its value, even if it looks like that.
        self.fail_with(USAGE, "usage", *family, "--tokens", "--history=", words=["--tokens: '--history=' is not an id"])
        self.assertIn("rowtide: --ids=: cannot be opened", self.run_program("inspect", "--", "--ids=").messages)

    def test_options_that_contradict_each_other_are_refused_in_either_order(self):
        pairs = [("rows", [MODEL, "--ids", "1"], ["--format", "raw"], ["--format", "f32"]),
                 ("address", ["--tokens", "1"], [MODEL], ["--family", "qwen_ple"]),
                 ("address", [MODEL], ["--tokens", "1"], ["--tokens-file", "ids"]),
                 ("bench", ["rows"], [MODEL], ["--synthetic", "64MiB"]),
                 ("bench", ["rows", MODEL], ["--memory", "64MiB"], ["--memory", "1GiB"]),
                 ("bench", ["rows"], ["--raw", MODEL, "--row-bytes", "34"], [MODEL]),
                 ("bench", ["cache", "--trace", "t"], [MODEL], ["--family", "qwen_ple"]),
                 ("generate", ["-m", MODEL], ["-p", "a"], ["-f", "b"]),
                 ("generate", ["-m", MODEL, "-p", "a"], ["--no-store"], ["--mode", "cache"]),
                 ("generate", ["-m", MODEL, "-p", "a"], ["--no-store"], ["--memory", "64MiB"]),
                 ("generate", ["-m", MODEL, "-p", "a"], ["--mode", "disk"], ["--mode", "resident"])]
        for command, others, one, other in pairs:
            with self.subTest(command, one=one, other=other):
                first = self.run_program(command, *others, *one, *other)
                second = self.run_program(command, *others, *other, *one)
                self.assertEqual((first.code, second.code), (USAGE, USAGE), first.messages)
                self.assertEqual(first.messages, second.messages)

    def test_the_log_level_is_checked_at_start(self):
        for level in ["error", "warn", "info", "debug"]:
            self.assertEqual(self.run_program("--version", environment={"ROWTIDE_LOG": level}).code, DONE)
        for level in ["", "loud", "INFO"]:
            self.fail_with(USAGE, "usage", "inspect", MODEL, environment={"ROWTIDE_LOG": level},
                           words=[f"ROWTIDE_LOG is '{level}'", "error, warn, info or debug"])

    def test_output_that_cannot_be_written_is_a_failure(self):
        with open("/dev/full", "wb") as full:
            ended = self.run_program("inspect", MODEL, output=full)
        self.assertEqual(ended.code, FAILED)
        self.assertIn("standard output cannot be written", ended.messages)

    def test_a_long_document_that_cannot_be_written_is_a_failure_too(self):
        with open("/dev/full", "wb") as full:
            ended = self.run_program("rows", MODEL, "--json", "--ids", ",".join(map(str, range(2000))), output=full)
        self.assertEqual(ended.code, FAILED)
        self.assertIn("standard output cannot be written", ended.messages)

    def test_closed_output_is_a_failure(self):
        for arguments in [["inspect", MODEL], ["inspect", MODEL, "--json"], ["--help"]]:
            command = ["sh", "-c", 'exec "$@" >&-', "sh", PROGRAM, *arguments]
            self.assertEqual(subprocess.run(command, stderr=subprocess.DEVNULL).returncode, FAILED)


if __name__ == "__main__":
    unittest.main()
