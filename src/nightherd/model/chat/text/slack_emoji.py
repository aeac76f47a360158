"""What Slack calls an emoji: reactions are added by name, not by character."""

from __future__ import annotations

import re
import unicodedata

NAMES = {
    "\u2705": "white_check_mark", "\u2714": "heavy_check_mark", "\u2611": "ballot_box_with_check",
    "\u274c": "x", "\u274e": "negative_squared_cross_mark", "\u2716": "heavy_multiplication_x",
    "\u2753": "question", "\u2754": "grey_question", "\u2757": "exclamation", "\u203c": "bangbang",
    "\u26a0": "warning", "\u26d4": "no_entry", "\u2139": "information_source", "\u26a1": "zap",
    "\u23f3": "hourglass_flowing_sand", "\u231b": "hourglass", "\u23f0": "alarm_clock", "\u23f1": "stopwatch",
    "\u23f8": "double_vertical_bar", "\u23f9": "black_square_for_stop", "\u25b6": "arrow_forward",
    "\u2b50": "star", "\u2728": "sparkles", "\u2764": "heart", "\u2600": "sunny", "\u2615": "coffee",
    "\u270b": "hand", "\u270c": "v", "\u270d": "writing_hand", "\u270f": "pencil2", "\u2709": "email",
    "\u2795": "heavy_plus_sign", "\u2796": "heavy_minus_sign", "\u267b": "recycle", "\u2699": "gear",
    "\u27a1": "arrow_right", "\u2b05": "arrow_left", "\u2b06": "arrow_up", "\u2b07": "arrow_down",
    "\U0001f440": "eyes", "\U0001f44d": "+1", "\U0001f44e": "-1", "\U0001f44b": "wave", "\U0001f44c": "ok_hand",
    "\U0001f44f": "clap", "\U0001f64f": "pray", "\U0001f64c": "raised_hands", "\U0001f4aa": "muscle",
    "\U0001f389": "tada", "\U0001f38a": "confetti_ball", "\U0001f680": "rocket", "\U0001f525": "fire",
    "\U0001f4af": "100", "\U0001f4a1": "bulb", "\U0001f4a4": "zzz", "\U0001f4ac": "speech_balloon",
    "\U0001f4ad": "thought_balloon", "\U0001f4dd": "memo", "\U0001f4cb": "clipboard", "\U0001f4cc": "pushpin",
    "\U0001f4ce": "paperclip", "\U0001f4c8": "chart_with_upwards_trend", "\U0001f4ca": "bar_chart",
    "\U0001f4e6": "package", "\U0001f4e3": "mega", "\U0001f4c1": "file_folder", "\U0001f4c4": "page_facing_up",
    "\U0001f512": "lock", "\U0001f513": "unlock", "\U0001f511": "key", "\U0001f517": "link", "\U0001f50d": "mag",
    "\U0001f514": "bell", "\U0001f515": "no_bell", "\U0001f527": "wrench", "\U0001f528": "hammer",
    "\U0001f504": "arrows_counterclockwise", "\U0001f501": "repeat", "\U0001f6ab": "no_entry_sign",
    "\U0001f6d1": "octagonal_sign", "\U0001f6a7": "construction", "\U0001f6a8": "rotating_light",
    "\U0001f41b": "bug", "\U0001f41e": "ladybug", "\U0001f411": "sheep", "\U0001f415": "dog2", "\U0001f40d": "snake",
    "\U0001f422": "turtle", "\U0001f916": "robot_face", "\U0001f9e0": "brain", "\U0001f914": "thinking_face",
    "\U0001f600": "grinning", "\U0001f604": "smile", "\U0001f642": "slightly_smiling_face",
    "\U0001f609": "wink", "\U0001f60d": "heart_eyes", "\U0001f60e": "sunglasses", "\U0001f62d": "sob",
    "\U0001f622": "cry", "\U0001f602": "joy", "\U0001f605": "sweat_smile", "\U0001f615": "confused",
    "\U0001f621": "rage", "\U0001f631": "scream", "\U0001f634": "sleeping", "\U0001f64b": "raising_hand",
    "\U0001f926": "face_palm", "\U0001f937": "shrug", "\U0001f973": "partying_face", "\U0001fae1": "saluting_face",
    "\U0001f534": "red_circle", "\U0001f7e2": "large_green_circle", "\U0001f7e1": "large_yellow_circle",
    "\U0001f535": "large_blue_circle", "\U0001f4bb": "computer", "\U0001f4b0": "moneybag", "\U0001f4b8": "money_with_wings",
    "\U0001f3c1": "checkered_flag", "\U0001f6e0": "hammer_and_wrench", "\U0001f5d1": "wastebasket",
}  # fmt: skip
"""Where Slack's name is not the one of the Unicode standard, and the commonest of all."""

_NAME = re.compile(r":?([a-z0-9_+'-]{1,100}):?")
_VARIATIONS = re.compile("[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]")


def slack_emoji(emoji: str) -> str | None:
    """Return Slack's name of an emoji; None when it has none that is known here.

    A name, with colons or without, is itself: so custom emoji of a workspace can be used. Skin tones are dropped.
    """
    name = _NAME.fullmatch(emoji)
    if name is not None:
        return name[1]
    character = _VARIATIONS.sub("", emoji)
    if character in NAMES:
        return NAMES[character]
    if len(character) != 1 or not unicodedata.category(character).startswith("S"):
        return None
    # Most names of Slack are those of Unicode; where one is not, Slack answers that it does not know it.
    return re.sub(r"[^a-z0-9]+", "_", unicodedata.name(character, "").lower()) or None
