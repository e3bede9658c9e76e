// Light, dark, or as the system has it.
import { recall, remember } from "./stored.js";

export const kThemes = ["system", "light", "dark"];

export const theme = $state({ choice: recall("theme", "system"), turn: 0 });

export function chooseTheme(choice) {
    theme.choice = choice;
    remember("theme", choice === "system" ? "" : choice);
    apply();
}

function apply() {
    if (theme.choice === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme.choice;
    theme.turn += 1;   // what is painted with colours read from the style sheet is painted again
}

apply();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => (theme.turn += 1));

/** The value of a colour of the style sheet, such as "--read". */
export function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
