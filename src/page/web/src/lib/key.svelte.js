// The API key, where the server asks for one: typed by the reader, kept until the browser is closed.

const kName = "cadans.key";
const saved = () => {
    try {
        return sessionStorage.getItem(kName) ?? "";
    } catch {
        return "";
    }
};

export const key = $state({ value: saved(), wanted: false });

/** The page shows the question; views that wait try again once it is answered. */
export function askForKey() {
    key.wanted = true;
}

export function giveKey(value) {
    key.value = value.trim();
    key.wanted = false;
    try {
        sessionStorage.setItem(kName, key.value);
    } catch {
        // then it holds until the page is closed
    }
}
