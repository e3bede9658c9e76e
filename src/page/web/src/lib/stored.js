// What this browser remembers of the reader's choices; nothing of what was said.

export function recall(name, otherwise) {
    try {
        return localStorage.getItem(`cadans.${name}`) ?? otherwise;
    } catch {
        return otherwise;   // a browser may forbid it
    }
}

export function remember(name, value) {
    try {
        if (value) localStorage.setItem(`cadans.${name}`, value);
        else localStorage.removeItem(`cadans.${name}`);
    } catch {
        // then it holds until the page is closed
    }
}
