"""Files that people send along."""

from model.chat.values import file
from nightherd.model.chat.files import (
    RefusedFile,
    attachment_path,
    refusal_text,
    shown_name,
    sort_files,
)
from nightherd.model.chat.incoming import IncomingFile
from nightherd.model.chat.settings import AttachmentSettings

SETTINGS = AttachmentSettings(directory=".slack-attachments", max_files=2, max_bytes=1_000)


def sorted_names(*files: IncomingFile) -> tuple[list[str], list[str]]:
    answer = sort_files(files, SETTINGS, can_transcribe=False)
    return [one.name for one in answer.fetched], [one.why for one in answer.refused]


def test_types_are_compared_without_case_and_parameters() -> None:
    assert sorted_names(file("a.txt", media_type="Text/Plain; charset=utf-8")) == (["a.txt"], [])
    assert sorted_names(file("a.zip", media_type="application/zip")) == (
        [],
        ["files of type application/zip are not fetched here"],
    )


def test_only_so_many_and_only_so_large() -> None:
    files = [file(f"{number}.pdf") for number in range(3)]
    assert sorted_names(file("big.pdf", size=1_001), *files) == (
        ["0.pdf", "1.pdf"],
        ["it is larger than 0.001 MB", "only 2 files of a message are fetched"],
    )


def test_no_name_leads_out_of_the_directory() -> None:
    assert attachment_path(".in/", "100.1", 0, "../../etc/passwd") == ".in/100.1-0-_.._etc_passwd"
    assert attachment_path(".in", "100.1", 1, "..") == ".in/100.1-1-file"
    assert attachment_path(".in", "100.1", 2, "my plan.pdf") == ".in/100.1-2-my_plan.pdf"
    long = attachment_path(".in", "1", 0, "x" * 300 + ".pdf")
    assert long.endswith("x.pdf")
    assert len(long) < 100


def test_names_are_shown_on_one_line_and_close_no_code() -> None:
    assert shown_name("a`b\n\x1b[31mc") == "a'b \\x1b[31mc"
    assert refusal_text([RefusedFile(name="a", why="it is too large")]) == (
        "I did not open `a`: it is too large."
    )
