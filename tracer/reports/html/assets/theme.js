"use strict";(()=>{try{let e=localStorage.getItem("foreshock-theme");(e==="dark"||e==="light")&&(document.documentElement.dataset.theme=e)}catch{}})();
