// The page's words in the reader's language.
import { recall, remember } from "../lib/stored.js";
import de from "./de.js";
import en from "./en.js";
import nl from "./nl.js";

const kTables = { en, nl, de };
export const kLanguages = { en: "English", nl: "Nederlands", de: "Deutsch" };

function preferred() {
    const wanted = [recall("language", ""), ...(navigator.languages ?? [])];
    return wanted.map((code) => code.slice(0, 2).toLowerCase()).find((code) => code in kTables) ?? "en";
}

export const language = $state({ code: preferred() });

export function speak(code) {
    language.code = code;
    remember("language", code);
}

/** The sentence of this name, with {name} filled in from values. */
export function say(name, values = {}) {
    const sentence = kTables[language.code][name] ?? en[name] ?? name;
    return sentence.replace(/\{(\w+)\}/g, (_, key) => values[key] ?? "");
}
